"""The reducer of a reduce, reduce-window or scan: its accumulators, and how they and elements are combined.

There are two kinds. Elements that are combined in order, in one thread, start from the initial values; the computation
is applied with its small floats as f32, which are rounded at the end (`Reducer.in_order`). Partial results that are
merged (`Reducer.in_parts`) start from the identity where the computation is one known operation (add, multiply,
minimum, maximum, and, or, xor), so that the initial value is counted once however the work is cut; small floats
accumulate in f32, and float sums may be reassociated, which lets LLVM keep several vectors of them. On CPUs the
extrema of floats accumulate as integers (`heron.codegen.elemental.float_order`). Any other
computation, and a reduce of several arrays, starts every partial result from the initial values, as XLA does.

Partial results are those of elements far apart, so the sides of the computation change places
(`heron.analysis.fusion.reduce_order`). Where it keeps one side and its position they are merged by position: of two NaN
the first is kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, func
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Block, Operation, SSAValue

from heron.analysis.fusion.reduce_order import position_of
from heron.codegen.elemental.arithmetic import binary
from heron.codegen.elemental.constants import scalar_constant
from heron.codegen.elemental.control import apply
from heron.codegen.elemental.convert import convert
from heron.codegen.elemental.emitter import FunctionEmitter
from heron.codegen.elemental.float_order import from_key, key_type, to_key
from heron.codegen.elemental.floats import is_small, narrow
from heron.codegen.elemental.logic import compare
from heron.codegen.elemental.values import Pair, Value, scalar_of, tuple_of
from heron.codegen.ir import origins
from heron.codegen.ir.types import compute_type, scalar_type
from heron.hlo import facts
from heron.hlo.facts import accumulates, having, is_combiner
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.literal import Literal
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import Shape, scalar, tuple_
from heron.hlo.ir.types import ElementType
from heron.records import dataclass

_BITWISE: dict[str, type[Operation]] = {"and": arith.AndIOp, "or": arith.OrIOp, "xor": arith.XOrIOp}
_REASSOCIATE: dict[str, Attribute] = {"fastmath": arith.FastMathFlagsAttr([FastMathFlag.REASSOC])}
_CONTRACT: dict[str, Attribute] = {"fastmath": arith.FastMathFlagsAttr([FastMathFlag.ALLOW_CONTRACT])}
_FREE = (_REASSOCIATE["fastmath"], _CONTRACT["fastmath"])


@dataclass(frozen=True, slots=True)
class Reducer:
    """The combination of the elements of one reduction.

    Args:
        hero: the reduce, reduce-window or scan.
        computation: combines accumulators with elements, or with other accumulators.
        opcode: the known operation that partial results are merged by, else empty.
        types: the element types of the accumulators.
        floats: the type of the floats that accumulators are keys of, if they are.
    """

    hero: Instruction
    computation: Computation
    opcode: str
    types: tuple[ElementType, ...]
    floats: ElementType | None = None

    @staticmethod
    def in_order(e: FunctionEmitter, hero: Instruction) -> Reducer:
        """The reducer for elements that are combined one after the other."""
        computation = e.kernel.promoted.get(hero.to_apply)
        if computation is None:
            computation = e.kernel.promoted[hero.to_apply] = _promoted(hero.to_apply)
        stored = _element_types(hero)
        same = computation is hero.to_apply
        return Reducer(hero, computation, "", stored if same else tuple(compute_type(t) for t in stored))

    @staticmethod
    def in_parts(hero: Instruction, keys: bool = False) -> Reducer:
        """The reducer for partial results that are merged; with ``keys`` extrema of floats accumulate as integers."""
        stored = _element_types(hero)
        opcode = "" if hero.shape.is_tuple else _known_operation(hero)
        if not opcode:
            return Reducer(hero, hero.to_apply, "", stored)
        (t,) = map(compute_type, stored)
        key = key_type(opcode, t) if keys else None
        return Reducer(hero, hero.to_apply, opcode, (key or t,), t if key else None)

    @property
    def arrays(self) -> Sequence[Instruction]:
        """The arrays that are reduced."""
        return self.hero.operands[: len(self.hero.operands) // 2]

    @property
    def shapes(self) -> list[Shape]:
        """The scalar shape of each accumulator."""
        return [scalar(t) for t in self.types]

    @property
    def packed_types(self) -> list[Attribute]:
        """The MLIR type of each accumulator."""
        return [scalar_type(t) for t in self.types]

    @property
    def is_plain(self) -> bool:
        """Whether the computation is one op on the accumulator and the element."""
        operands = set(self.computation.root.operands)
        return len(self.types) == 1 and len(operands) == 2 and all(o.opcode == "parameter" for o in operands)

    @property
    def adds_floats(self) -> bool:
        """Whether the computation adds floats, whatever else it does: a long chain of it loses digits.

        Products are no more accurate in parts: each factor counts alike.
        """
        sums = [i.shape.element_type for i in self.computation.instructions if facts.is_additive(i)]
        return any(t.is_float or t.is_complex for t in sums)

    # -- values: an element or an accumulator each ---------------------------------------------------------------------

    def enter(self, e: FunctionEmitter, elements: Sequence[Value]) -> list[Value]:
        """Elements of the arrays as accumulators."""
        stored = _element_types(self.hero)
        if self.floats is not None:
            value = convert(e, elements[0], stored[0], self.floats)
            return [to_key(e, self.opcode, scalar_of(value), self.floats)]
        return [convert(e, v, s, t) for v, s, t in zip(elements, stored, self.types, strict=True)]

    def leave(self, e: FunctionEmitter, accumulators: Sequence[Value]) -> list[Value]:
        """Accumulators as values of the result's types."""
        stored = _element_types(self.hero)
        if self.opcode:
            (value,) = accumulators
            if self.floats is not None:
                value = from_key(e, self.opcode, scalar_of(value), self.floats)
            return [narrow(e, scalar_of(value), stored[0]) if is_small(stored[0]) else value]
        return [convert(e, v, t, s) for v, s, t in zip(accumulators, stored, self.types, strict=True)]

    def combine(self, e: FunctionEmitter, a: Sequence[Value], b: Sequence[Value]) -> list[Value]:
        """Accumulators combined with entered elements, or with other accumulators."""
        with origins.inside(self.hero.name):
            return self._combined(e, a, b)

    def _combined(self, e: FunctionEmitter, a: Sequence[Value], b: Sequence[Value]) -> list[Value]:
        if self.opcode in _BITWISE:
            return [e.b.op(_BITWISE[self.opcode], scalar_of(a[0]), scalar_of(b[0]))]
        if self.opcode:
            value = binary(e, self.opcode, a[0], b[0], self.types[0])
            reassociate(value)
            return [value]
        result = apply(e, self.computation, [*a, *b])
        return list(tuple_of(result)) if self.computation.root.shape.is_tuple else [result]

    def pack(self, e: FunctionEmitter, accumulators: Sequence[Value]) -> list[SSAValue]:
        """Accumulators as SSA scalars."""
        return [v for value, s in zip(accumulators, self.shapes, strict=True) for v in e.pack(value, s)]

    def unpack(self, e: FunctionEmitter, scalars: Sequence[SSAValue]) -> list[Value]:
        """The inverse of `pack`."""
        rest = iter(scalars)
        return [e.unpack(rest, s) for s in self.shapes]

    # -- accumulators as SSA scalars -----------------------------------------------------------------------------------

    def start(self, e: FunctionEmitter) -> list[SSAValue]:
        """The accumulators before the first element: the identity of a known operation, else the initial values."""
        if self.opcode:
            return self.pack(e, [scalar_constant(e, self._identity(), self.types[0])])
        return self.pack(e, self.enter(e, initial_values(e, self.hero)))

    def identity(self, e: FunctionEmitter) -> list[SSAValue] | None:
        """The accumulators that change no others, where the computation is one known operation."""
        opcode = "" if self.hero.shape.is_tuple else _known_operation(self.hero)
        if not opcode:
            return None
        return self.pack(e, [scalar_constant(e, facts.identity(opcode, self.types[0]), self.types[0])])

    def step(self, e: FunctionEmitter, accumulators: Sequence[SSAValue], elements: Sequence[Value]) -> list[SSAValue]:
        """The accumulators with one more element of each array."""
        return self.pack(e, self.combine(e, self.unpack(e, accumulators), self.enter(e, elements)))

    def merge(self, e: FunctionEmitter, a: Sequence[SSAValue], b: Sequence[SSAValue]) -> list[SSAValue]:
        """Two partial results as one."""
        k = position_of(self.hero) if self.hero.opcode == "reduce" else None  # a scan's parts come in order
        if k is not None:
            a, b = self._by_position(e, k, a, b)
        return self.pack(e, self.combine(e, self.unpack(e, a), self.unpack(e, b)))

    def finish(self, e: FunctionEmitter, accumulators: Sequence[SSAValue]) -> Value:
        """The value of the reduction, in its own types, with the initial value counted in."""
        values = self.unpack(e, accumulators)
        if self.opcode and not self._starts_from_identity():
            values = self.combine(e, self.enter(e, initial_values(e, self.hero)), values)
        values = tuple(self.leave(e, values))
        return values if self.hero.shape.is_tuple else values[0]

    def combiner(self, e: FunctionEmitter, symbol: str) -> str:
        """Adds the private function `(acc…, x…) -> acc…` for warp shuffles to the kernel; returns its name."""
        block = Block(arg_types=[*self.packed_types, *self.packed_types])
        inner = FunctionEmitter(e.kernel, block, {})
        n = len(self.types)
        results = self.merge(inner, block.args[:n], block.args[n:])
        inner.b.terminate(func.ReturnOp, results)
        e.kernel.add_function(symbol, block, self.packed_types, private=True)
        return symbol

    def _by_position(
        self, e: FunctionEmitter, k: int, a: Sequence[SSAValue], b: Sequence[SSAValue]
    ) -> tuple[list[SSAValue], list[SSAValue]]:
        """Two partial results, first the one whose accumulator `k` is less."""
        is_later = compare(e, "GT", self.unpack(e, a)[k], self.unpack(e, b)[k], self.types[k])
        pairs = [*zip(a, b, strict=True)]
        return (
            [e.b.op(arith.SelectOp, is_later, y, x, type=x.type) for x, y in pairs],
            [e.b.op(arith.SelectOp, is_later, x, y, type=x.type) for x, y in pairs],
        )

    def _identity(self) -> complex:
        """The identity of the operation; -0.0 for sums unless the initial value is +0.0 itself."""
        if self.floats is None and self._starts_from_identity():
            return self.hero.operands[1].literal.item()
        return facts.identity(self.opcode, self.types[0])

    def _starts_from_identity(self) -> bool:
        init = self.hero.operands[1]
        t = self.floats or self.types[0]
        return init.opcode == "constant" and init.literal.item() == facts.identity(self.opcode, t)


def initial_values(e: FunctionEmitter, hero: Instruction) -> list[Value]:
    """The initial values of a reduction, in the operands' types."""
    return [e.value(o, ()) for o in hero.operands[len(hero.operands) // 2 :]]


def reassociate(value: Value) -> None:
    """Let LLVM sum in another order, when `value` is a float sum or product, or a complex sum: several vectors of
    partial results."""
    parts = [value.re, value.im] if isinstance(value, Pair) else [value] if isinstance(value, SSAValue) else []
    known = (arith.AddfOp,) if len(parts) == 2 else (arith.AddfOp, arith.MulfOp)
    if all(isinstance(p.owner, known) for p in parts):
        for p in parts:
            p.owner.properties.update(_REASSOCIATE)  # type: ignore[union-attr]


def contract(product: Value, total: Value) -> None:
    """Let LLVM round a float product and the sum it is added to once, where the machine has an instruction for it."""
    if isinstance(product, SSAValue) and isinstance(total, SSAValue):
        for op in (product.owner, total.owner):
            if isinstance(op, arith.MulfOp | arith.AddfOp):
                op.properties.update(_CONTRACT)


def rounds_freely(op: Operation) -> bool:
    """Whether LLVM chooses the order of an op's sums or products, or rounds two ops once: the bits depend on how it
    optimises."""
    return op.properties.get("fastmath") in _FREE


def _element_types(hero: Instruction) -> tuple[ElementType, ...]:
    return tuple(o.shape.element_type for o in hero.operands[: len(hero.operands) // 2])


def _known_operation(hero: Instruction) -> str:
    """The opcode when the computation is one known operation on its two parameters."""
    root = hero.to_apply.root
    if not is_combiner(root.op):
        return ""
    if {o.opcode for o in root.operands} != {"parameter"} or len(set(root.operands)) != 2:
        return ""
    if hero.shape.element_type.is_complex and not accumulates(root.op):
        return ""
    return root.opcode


#: ops that fix the precision of a computation's values: with one inside, accumulation stays in the stated type
_PRECISION = having(Trait.CONVERTS)


def _promoted(computation: Computation) -> Computation:
    """A computation with its small floats as f32, so that sums are rounded once, at the end; itself where it cannot."""
    instructions = computation.post_order()
    small = [i for i in instructions if any(is_small(s.element_type) for _, s in i.shape.leaves())]
    if not small or any(i.opcode in _PRECISION or i.called for i in instructions):
        return computation
    copy = Computation(computation.name)
    done: dict[Instruction, Instruction] = {}
    for i in instructions:
        new = i.clone([done[o] for o in i.operands], _wide_shape(i.shape))
        if i.opcode == "constant":
            new.attrs["literal"] = Literal(new.shape, i.literal.array.astype(new.shape.element_type.dtype))
        done[i] = copy.attach(new)
    copy.root = done[computation.root]
    return copy


def _wide_shape(shape: Shape) -> Shape:
    if shape.tuple_shapes is not None:
        return tuple_(tuple(_wide_shape(s) for s in shape.tuple_shapes))
    return shape.with_type(compute_type(shape.element_type))
