"""reduce and reduce-window as loops in one thread: those that no emitter of reductions takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import SSAValue

from heron.analysis.indexing.hlo_maps import Index, reduce_index, window_index
from heron.analysis.indexing.map import Constraint
from heron.codegen.elemental.emitter import FunctionEmitter
from heron.codegen.elemental.movement import clamped
from heron.codegen.elemental.reducer import Reducer, reassociate
from heron.codegen.elemental.registry import rule
from heron.codegen.elemental.values import Value
from heron.codegen.ir.dialects.xla_gpu import LoopOp
from heron.hlo.facts import calls_function, is_plain_product
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait


@rule("reduce")
def _reduce(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    arrays = i.operands[: len(i.operands) // 2]
    dimensions: Sequence[int] = i.dimensions
    sizes = [arrays[0].shape.dims[d] for d in sorted(dimensions)]

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
    most = _STRAIGHT_COLUMNS if sizes and sizes[-1] <= _SHORT_ROW else _STRAIGHT_ELEMENTS
    if _is_small(e, arrays, sizes, most):
        return _straight_window(e, i, index, sizes)
    return _accumulate(e, i, sizes, read, inside)


#: elements and instructions of a window or a reduce that is written out rather than looped over
_STRAIGHT_ELEMENTS = 64
_STRAIGHT_COST = 256
#: the same of a window whose rows are short: they do not fill vectors of their own
_STRAIGHT_COLUMNS, _SHORT_ROW = 128, 16


def _is_small(
    e: FunctionEmitter, arrays: Sequence[Instruction], sizes: Sequence[int], most: int = _STRAIGHT_ELEMENTS
) -> bool:
    """Whether to write the elements out: then the loop around them can be vectorised."""
    elements = prod(sizes)
    if not e.kernel.straight or not 0 < elements <= most:
        return False
    computed = _computed(e, arrays, _STRAIGHT_COST // elements)
    return computed is not None and not any(i.called or is_plain_product(i) for i in computed)


def _is_uniform(e: FunctionEmitter, arrays: Sequence[Instruction]) -> bool:
    """Whether all elements are computed alike, by short code that no number in place of an index makes shorter.

    Calls of maths functions are for the loop around: they are made on its vectors.
    """
    computed = _computed(e, arrays, _STRAIGHT_COST)
    return computed is not None and all(
        (i.op.is_elementwise and not calls_function(i)) or Trait.GIVEN in i.op.traits or i.opcode == "broadcast"
        for i in computed
    )


def _computed(e: FunctionEmitter, arrays: Sequence[Instruction], most: int) -> set[Instruction] | None:
    """The instructions that an element is computed by, but for calls of functions. None: more than `most`."""
    seen: set[Instruction] = set()
    stack = list(arrays)
    while stack:
        i = stack.pop()
        if i in seen or i in e.kernel.functions:
            continue
        seen.add(i)
        if len(seen) > most:
            return None
        stack.extend(i.operands)
    return seen


def _straight_window(e: FunctionEmitter, i: Instruction, index: Index, sizes: Sequence[int]) -> Value:
    """The window written out; elements of the padding are left out by a select where they can be read at all."""
    reducer = Reducer.in_order(e, i)
    arrays = i.operands[: len(i.operands) // 2]

    def body(variables: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        where, constraints = window_index(i.window, arrays[0].shape.dims, index, variables)
        condition = e.holds(constraints)

        def combined(place: Index) -> list[SSAValue]:
            return reducer.step(e, carried, [e.value(a, place) for a in arrays])

        if condition is None:
            return combined(e.simplify(where))
        safe = clamped(e, where, arrays[0]) if len(arrays) == 1 else None
        if safe is None:
            return e.guarded(condition, carried, lambda: combined(e.simplify(where)))
        return [e.b.select(condition, new, old) for new, old in zip(combined(safe), carried, strict=True)]

    return reducer.finish(e, e.box(sizes, reducer.start(e), body))


def _accumulate(
    e: FunctionEmitter,
    i: Instruction,
    sizes: Sequence[int],
    read: Callable[[Index], list[Value]],
    inside: Callable[[Index], Sequence[Constraint]] | None = None,
    straight: bool = False,
) -> Value:
    """The initial values combined with every element of the box, outermost first."""
    reducer = Reducer.in_order(e, i)
    inits = reducer.start(e)

    def body(variables: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        values = reducer.combine(e, reducer.unpack(e, carried), reducer.enter(e, read(variables)))
        if reducer.is_plain:
            reassociate(values[0])
        return reducer.pack(e, values)

    if straight and _is_uniform(e, i.operands[: len(i.operands) // 2]):
        final = e.loop(sizes, inits, body)
        if isinstance(loop := final[0].owner, LoopOp):  # LLVM copies the body in a fraction of the time
            loop.attributes["heron.full_unroll"] = UnitAttr()
    elif straight:
        final = e.box(sizes, inits, body)
    else:
        final = inits if 0 in sizes else e.loop(sizes, inits, body, inside)
    return reducer.finish(e, final)
