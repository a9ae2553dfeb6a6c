"""reduce and reduce-window as loops in one thread: what is left when no hero emitter takes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, SSAValue

from heron.analysis.indexing.hlo_maps import Index, reduce_index, window_index
from heron.analysis.indexing.map import Constraint
from heron.codegen.elemental.control import apply, promoted, wide_shape
from heron.codegen.elemental.convert import convert
from heron.codegen.elemental.emitter import FunctionEmitter, Value
from heron.codegen.elemental.movement import clamped
from heron.codegen.elemental.registry import rule
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import scalar

_REASSOCIATE: dict[str, Attribute] = {"fastmath": arith.FastMathFlagsAttr([FastMathFlag.REASSOC])}


def reassociate(value: Value) -> None:
    """Let LLVM sum in another order, when `value` is a float sum or product: several vectors of partial results."""
    if isinstance(value, SSAValue) and isinstance(value.owner, (arith.AddfOp, arith.MulfOp)):
        value.owner.properties.update(_REASSOCIATE)


class Reducer:
    """A reduction's computation and the scalars it carries: small floats accumulate as f32 and are rounded at the end.

    ``wide``: shapes of the accumulators; ``stored``: those of the results.
    """

    def __init__(self, e: FunctionEmitter, i: Instruction) -> None:
        self.e = e
        self.computation = promoted(e, i.to_apply)
        parts = i.shape.tuple_shapes if i.shape.tuple_shapes is not None else (i.shape,)
        self.stored = [scalar(s.element_type) for s in parts]
        same = self.computation is i.to_apply
        self.wide = self.stored if same else [wide_shape(s) for s in self.stored]

    @property
    def is_plain(self) -> bool:
        """Whether it is one op on the accumulator and the element."""
        operands = set(self.computation.root.operands)
        return len(self.wide) == 1 and len(operands) == 2 and all(o.opcode == "parameter" for o in operands)

    def enter(self, values: Sequence[Value]) -> list[Value]:
        """Values of the operands' types as accumulators."""
        types = zip(values, self.stored, self.wide, strict=True)
        return [convert(self.e, v, s.element_type, w.element_type) for v, s, w in types]

    def leave(self, values: Sequence[Value]) -> list[Value]:
        """Accumulators as values of the results' types."""
        types = zip(values, self.stored, self.wide, strict=True)
        return [convert(self.e, v, w.element_type, s.element_type) for v, s, w in types]

    def combine(self, accumulators: Sequence[Value], values: Sequence[Value]) -> list[Value]:
        """One application of the computation."""
        result = apply(self.e, self.computation, [*accumulators, *values])
        return list(result) if self.computation.root.shape.is_tuple else [result]

    def pack(self, values: Sequence[Value]) -> list[SSAValue]:
        """Accumulators as SSA scalars."""
        return [v for value, s in zip(values, self.wide, strict=True) for v in self.e.pack(value, s)]

    def unpack(self, scalars: Sequence[SSAValue]) -> list[Value]:
        """The inverse of `pack`."""
        found = iter(scalars)
        return [self.e.unpack(found, s) for s in self.wide]


def initial_values(e: FunctionEmitter, i: Instruction) -> list[Value]:
    """The initial values of a reduce or reduce-window, in the operands' types."""
    return [e.value(o, ()) for o in i.operands[len(i.operands) // 2 :]]


@rule("reduce")
def _reduce(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    arrays = i.operands[: len(i.operands) // 2]
    sizes = [arrays[0].shape.dims[d] for d in sorted(i.dimensions)]

    def read(variables: Index) -> list[Value]:
        place = e.simplify(reduce_index(i, index, variables))
        return [e.value(a, place) for a in arrays]

    return _accumulate(e, i, sizes, read, straight=_is_small(e, arrays, sizes))


@rule("reduce-window")
def _reduce_window(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    arrays = i.operands[: len(i.operands) // 2]
    dims = arrays[0].shape.dims

    def read(variables: Index) -> list[Value]:
        place = e.simplify(window_index(i.window, dims, index, variables)[0])
        return [e.value(a, place) for a in arrays]

    def inside(variables: Index) -> Sequence[Constraint]:
        return window_index(i.window, dims, index, variables)[1]

    sizes = [w.size for w in i.window]
    if _is_small(e, arrays, sizes):
        return _straight_window(e, i, index, sizes)
    return _accumulate(e, i, sizes, read, inside)


#: elements and instructions of a window or a reduce that is written out rather than looped over
_STRAIGHT_ELEMENTS = 32
_STRAIGHT_COST = 256


def _is_small(e: FunctionEmitter, arrays: Sequence[Instruction], sizes: Sequence[int]) -> bool:
    """Whether to write the elements out: then the loop around them can be vectorised."""
    elements = prod(sizes)
    if not e.kernel.straight or not 0 < elements <= _STRAIGHT_ELEMENTS:
        return False
    seen: set[Instruction] = set()
    stack = list(arrays)
    while stack:
        i = stack.pop()
        if i in seen or i in e.kernel.functions:
            continue
        seen.add(i)
        if len(seen) * elements > _STRAIGHT_COST or i.called or i.opcode in ("dot", "convolution"):
            return False
        stack.extend(i.operands)
    return True


def _straight_window(e: FunctionEmitter, i: Instruction, index: Index, sizes: Sequence[int]) -> Value:
    """The window written out; elements of the padding are left out by a select where they can be read at all."""
    reducer = Reducer(e, i)
    arrays = i.operands[: len(i.operands) // 2]

    def body(variables: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        where, constraints = window_index(i.window, arrays[0].shape.dims, index, variables)
        condition = e.holds(constraints)

        def combined(place: Index) -> list[SSAValue]:
            values = reducer.enter([e.value(a, place) for a in arrays])
            return reducer.pack(reducer.combine(reducer.unpack(carried), values))

        if condition is None:
            return combined(e.simplify(where))
        safe = clamped(e, where, arrays[0]) if len(arrays) == 1 else None
        if safe is None:
            return e.guarded(condition, carried, lambda: combined(e.simplify(where)))
        return [e.b.select(condition, new, old) for new, old in zip(combined(safe), carried, strict=True)]

    values = reducer.unpack(e.box(sizes, reducer.pack(reducer.enter(initial_values(e, i))), body))
    left = tuple(reducer.leave(values))
    return left if i.shape.is_tuple else left[0]


def _accumulate(
    e: FunctionEmitter,
    i: Instruction,
    sizes: Sequence[int],
    read: Callable[[Index], list[Value]],
    inside: Callable[[Index], Sequence[Constraint]] | None = None,
    straight: bool = False,
) -> Value:
    """The initial values combined with every element of the box, outermost first."""
    reducer = Reducer(e, i)
    inits = reducer.pack(reducer.enter(initial_values(e, i)))

    def body(variables: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        values = reducer.combine(reducer.unpack(carried), reducer.enter(read(variables)))
        if reducer.is_plain:
            reassociate(values[0])
        return reducer.pack(values)

    if straight:
        final = e.box(sizes, inits, body)
    else:
        final = inits if 0 in sizes else e.loop(sizes, inits, body, inside)
    values = tuple(reducer.leave(reducer.unpack(final)))
    return values if i.shape.is_tuple else values[0]
