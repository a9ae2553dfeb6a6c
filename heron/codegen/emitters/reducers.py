"""How a reduce combines: what partial results start from, how elements join them, how partial results merge.

A reducer that is one known operation (add, multiply, minimum, maximum, and, or, xor) starts partial results from its
identity, so the initial value is counted once however the work is cut; small floats accumulate in f32, and float sums
may be reassociated, which lets LLVM keep several vector accumulators. Any other reducer, and a reduce of several
arrays, starts every partial result from the initial values, as XLA does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith, func
from xdsl.ir import Attribute, Block, Operation, SSAValue

from heron.codegen.elemental import FunctionEmitter, Value
from heron.codegen.elemental.arithmetic import binary
from heron.codegen.elemental.control import apply
from heron.codegen.elemental.floats import is_small, narrow, widen
from heron.codegen.elemental.movement import scalar_constant
from heron.codegen.elemental.reduction import reassociate
from heron.codegen.ir.types import scalar_type
from heron.hlo.ir import types
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape, scalar
from heron.hlo.ir.types import ElementType

_ARITHMETIC = frozenset({"add", "multiply", "minimum", "maximum"})
_BITWISE: dict[str, type[Operation]] = {"and": arith.AndIOp, "or": arith.OrIOp, "xor": arith.XOrIOp}


@dataclass(frozen=True, slots=True)
class Reducer:
    """The combination of one reduce, `hero`.

    ``opcode``: the known operation it is, else empty. ``types``: element types of the accumulators.
    """

    hero: Instruction
    opcode: str
    types: tuple[ElementType, ...]

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
        """The type of each accumulator as an SSA value."""
        return [scalar_type(t) for t in self.types]

    @property
    def rounds(self) -> bool:
        """Whether every step may round: a long chain of them loses digits."""
        return self.opcode in ("add", "multiply") and (self.types[0].is_float or self.types[0].is_complex)

    def start(self, e: FunctionEmitter) -> list[SSAValue]:
        """What every partial result starts from."""
        if self.opcode:
            return e.pack(scalar_constant(e, self._identity(), self.types[0]), self.shapes[0])
        inits = [e.value(o, ()) for o in self.hero.operands[len(self.types) :]]
        return [v for init, s in zip(inits, self.shapes, strict=True) for v in e.pack(init, s)]

    def step(self, e: FunctionEmitter, accumulators: Sequence[SSAValue], elements: Sequence[Value]) -> list[SSAValue]:
        """The accumulators with one more element of each array."""
        if self.opcode and is_small(self.hero.shape.element_type):
            elements = [widen(e, elements[0], self.hero.shape.element_type)]
        return self._combine(e, self._unpack(e, accumulators), elements)

    def merge(self, e: FunctionEmitter, a: Sequence[SSAValue], b: Sequence[SSAValue]) -> list[SSAValue]:
        """Two partial results as one."""
        return self._combine(e, self._unpack(e, a), self._unpack(e, b))

    def finish(self, e: FunctionEmitter, accumulators: Sequence[SSAValue]) -> Value:
        """The value of the reduce: the initial value counted in, in the reduce's own type."""
        if not self.opcode:
            values = tuple(self._unpack(e, accumulators))
            return values if self.hero.shape.is_tuple else values[0]
        element_type = self.hero.shape.element_type
        (value,) = self._unpack(e, accumulators)
        if not self._starts_from_identity():
            init = e.value(self.hero.operands[1], ())
            value = self._simple(e, widen(e, init, element_type) if is_small(element_type) else init, value)
        return narrow(e, value, element_type)

    def combiner(self, e: FunctionEmitter, symbol: str) -> str:
        """Adds the private function `(acc…, x…) -> acc…` for warp shuffles to the kernel; returns its name."""
        block = Block(arg_types=[*self.packed_types, *self.packed_types])
        inner = FunctionEmitter(e.kernel, block, {})
        n = len(self.types)
        results = self.merge(inner, block.args[:n], block.args[n:])
        inner.b.terminate(func.ReturnOp, results)
        e.kernel.add_function(symbol, block, self.packed_types, private=True)
        return symbol

    def _combine(self, e: FunctionEmitter, a: Sequence[Value], b: Sequence[Value]) -> list[SSAValue]:
        if self.opcode:
            return e.pack(self._simple(e, a[0], b[0]), self.shapes[0])
        result = apply(e, self.hero.to_apply, [*a, *b])
        results = result if self.hero.shape.is_tuple else (result,)
        return [v for value, s in zip(results, self.shapes, strict=True) for v in e.pack(value, s)]

    def _simple(self, e: FunctionEmitter, a: Value, b: Value) -> Value:
        if self.opcode in _BITWISE:
            return e.b.op(_BITWISE[self.opcode], a, b)
        value = binary(e, self.opcode, a, b, self.types[0])
        reassociate(value)
        return value

    def _unpack(self, e: FunctionEmitter, values: Sequence[SSAValue]) -> list[Value]:
        rest = iter(values)
        return [e.unpack(rest, s) for s in self.shapes]

    def _identity(self) -> float | int:
        """The identity of the operation; -0.0 for sums unless the initial value is +0.0 itself."""
        if self._starts_from_identity():
            return self.hero.operands[1].literal.item()
        return identities(self.opcode, self.types[0])[0]

    def _starts_from_identity(self) -> bool:
        init = self.hero.operands[1]
        if init.opcode != "constant":
            return False
        value = init.literal.item()
        return any(value == known for known in identities(self.opcode, self.types[0]))


def reducer_of(hero: Instruction) -> Reducer:
    """How `hero`, a reduce, combines."""
    n = len(hero.operands) // 2
    element_types = tuple(o.shape.element_type for o in hero.operands[:n])
    opcode = _known_operation(hero) if n == 1 and not hero.shape.is_tuple else ""
    if opcode and is_small(element_types[0]):
        element_types = (types.F32,)
    return Reducer(hero, opcode, element_types)


def split(reducers: Sequence[Reducer], values: Sequence[SSAValue]) -> list[Sequence[SSAValue]]:
    """Accumulators of all reducers, reducer by reducer."""
    out: list[Sequence[SSAValue]] = []
    at = 0
    for r in reducers:
        out.append(values[at : at + len(r.types)])
        at += len(r.types)
    return out


def starts(e: FunctionEmitter, reducers: Sequence[Reducer]) -> list[SSAValue]:
    """What every partial result of all reducers starts from."""
    return [v for r in reducers for v in r.start(e)]


def merged(
    e: FunctionEmitter, reducers: Sequence[Reducer], a: Sequence[SSAValue], b: Sequence[SSAValue]
) -> list[SSAValue]:
    """Two partial results of all reducers as one."""
    parts = zip(reducers, split(reducers, a), split(reducers, b), strict=True)
    return [v for r, x, y in parts for v in r.merge(e, x, y)]


def lose_digits(reducers: Sequence[Reducer]) -> bool:
    """Whether to cut long chains: steps round, and partial results start from identities."""
    return all(r.opcode for r in reducers) and any(r.rounds for r in reducers)


def _known_operation(hero: Instruction) -> str:
    """The opcode when the reducer is one known operation on its two parameters."""
    root = hero.to_apply.root
    if root.opcode not in _ARITHMETIC and root.opcode not in _BITWISE:
        return ""
    if {o.opcode for o in root.operands} != {"parameter"} or len(set(root.operands)) != 2:
        return ""
    t = hero.shape.element_type
    if t.is_complex and root.opcode not in ("add", "multiply"):
        return ""
    return root.opcode


def identities(opcode: str, t: ElementType) -> list[float | int]:
    """The values `x` with `x op y == y`, the one to start from first."""
    if t is types.PRED:
        return [int(opcode in ("multiply", "minimum", "and"))]
    if opcode in ("add", "or", "xor"):
        return [-0.0, 0.0] if t.is_float else [0]
    if opcode == "multiply":
        return [1]
    if opcode == "and":
        return [-1 if t.is_signed else (1 << t.bits) - 1]
    if t.is_float:
        return [-np.inf if opcode == "maximum" else np.inf]
    lowest, highest = (-(1 << (t.bits - 1)), (1 << (t.bits - 1)) - 1) if t.is_signed else (0, (1 << t.bits) - 1)
    return [lowest if opcode == "maximum" else highest]
