"""Arithmetic: add … remainder, maximum, minimum, abs, negate, sign, rounding, integer power.

Integer corner cases are XLA's: x / 0 is all ones, x % 0 is x, INT_MIN / -1 is INT_MIN with remainder 0. On `pred`, add
and maximum are or, multiply and minimum are and.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, llvm, math
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Operation, SSAValue

from heron.analysis.indexing.hlo_maps import Index
from heron.analysis.indexing.positions import position_sum
from heron.codegen.elemental import complex as complex_rules
from heron.codegen.elemental.emitter import FunctionEmitter
from heron.codegen.elemental.float_pick import are_new, pick, picks
from heron.codegen.elemental.floats import is_small, narrow, widen
from heron.codegen.elemental.positions import index_to_scalar
from heron.codegen.elemental.registry import rule
from heron.codegen.elemental.values import Value, pair_of, scalar_of
from heron.hlo.facts import having
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.hlo.ir.types import S1, ElementType

#: opcode -> op on floats, on signed, on unsigned, on pred
_BINARY: dict[str, tuple[type[Operation], ...]] = {
    "add": (arith.AddfOp, arith.AddiOp, arith.AddiOp, arith.OrIOp),
    "subtract": (arith.SubfOp, arith.SubiOp, arith.SubiOp, arith.XOrIOp),
    "multiply": (arith.MulfOp, arith.MuliOp, arith.MuliOp, arith.AndIOp),
    "maximum": (arith.MaximumfOp, arith.MaxSIOp, arith.MaxUIOp, arith.OrIOp),
    "minimum": (arith.MinimumfOp, arith.MinSIOp, arith.MinUIOp, arith.AndIOp),
}
_OF_S1: dict[str, type[Operation]] = {"maximum": arith.AndIOp, "minimum": arith.OrIOp}
_COLUMN = {"float": 0, "signed": 1, "unsigned": 2, "pred": 3}
_ROUNDING = {
    "ceil": math.CeilOp,
    "floor": math.FloorOp,
    "round-nearest-afz": math.RoundOp,
    "round-nearest-even": math.RoundEvenOp,
}


@rule(*_BINARY)
def _binary(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    position = position_sum(i, index)
    if position is not None:
        return index_to_scalar(e, e.simplify((position,))[0], i.shape.element_type)
    a, b = e.operands(i, index)
    return binary(e, i.opcode, a, b, i.shape.element_type)


def binary(e: FunctionEmitter, opcode: str, a: Value, b: Value, t: ElementType) -> Value:
    """`add`, `subtract`, `multiply`, `maximum` or `minimum` of two values of type `t`."""
    if t.is_complex:
        return complex_rules.binary(e, opcode, pair_of(a), pair_of(b))
    a, b = scalar_of(a), scalar_of(b)
    kind = _BINARY[opcode][_COLUMN[t.kind]]
    if t is S1:  # as bits: kernels take a number of one bit for 0 or 1, not for 0 or -1
        kind = _OF_S1.get(opcode, kind)
    if opcode in having(Trait.EXTREMUM) and is_small(t):
        return _choose(e, opcode, a, b, t)
    if e.kernel.picks and picks(opcode, t) and are_new(a, b):
        return pick(e, opcode, a, b)
    if t.is_float:
        return narrow(e, e.b.op(kind, widen(e, a, t), widen(e, b, t)), t)
    return e.b.op(kind, a, b)


def _choose(e: FunctionEmitter, opcode: str, a: SSAValue, b: SSAValue, t: ElementType) -> SSAValue:
    """One of two small floats as it is (LLVM would narrow `maximum` to bf16, which x86 has not); NaN wins.

    Equal values have equal bits, but for zeros: the signs decide between those, 0 being greater than -0.
    """
    first, second = widen(e, a, t), widen(e, b, t)
    ahead = e.b.cmpf("ogt" if opcode == "maximum" else "olt", first, second)
    bits = IntegerType(t.bits)
    words = [e.b.op(arith.BitcastOp, value, type=bits) for value in (a, b)]
    zero = e.b.op(arith.AndIOp if opcode == "maximum" else arith.OrIOp, *words)
    word = e.b.select(e.b.cmpf("oeq", first, second), zero, words[1])
    word = e.b.select(e.b.op(arith.OrIOp, ahead, e.b.cmpf("uno", first, first)), words[0], word)
    return e.b.op(arith.BitcastOp, word, type=a.type)


@rule("divide")
def _divide(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    a, b = e.operands(i, index)
    t = i.shape.element_type
    if t.is_complex:
        return complex_rules.binary(e, "divide", pair_of(a), pair_of(b))
    if t.is_float:
        return narrow(e, e.b.op(arith.DivfOp, widen(e, a, t), widen(e, b, t)), t)
    a, b = scalar_of(a), scalar_of(b)
    bad, divisor = _safe_divisor(e, a, b, t)
    quotient = e.b.op(arith.DivSIOp if t.is_signed else arith.DivUIOp, a, divisor)
    if bad.overflow is not None:
        quotient = e.b.select(bad.overflow, a, quotient)
    return quotient if bad.zero is None else e.b.select(bad.zero, e.b.integer(-1, a.type), quotient)


@rule("remainder")
def _remainder(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    a, b = e.scalars(i, index)
    t = i.shape.element_type
    if t.is_float:
        return narrow(e, e.b.op(llvm.FRemOp, widen(e, a, t), widen(e, b, t)), t)
    bad, divisor = _safe_divisor(e, a, b, t)
    rest = e.b.op(arith.RemSIOp if t.is_signed else arith.RemUIOp, a, divisor)
    if bad.overflow is not None:
        rest = e.b.select(bad.overflow, e.b.integer(0, a.type), rest)
    return rest if bad.zero is None else e.b.select(bad.zero, a, rest)


class _Bad:
    """Conditions (i1) under which a division is not defined by the machine; None: cannot happen."""

    def __init__(self, zero: SSAValue | None, overflow: SSAValue | None) -> None:
        self.zero, self.overflow = zero, overflow


def _safe_divisor(e: FunctionEmitter, a: SSAValue, b: SSAValue, t: ElementType) -> tuple[_Bad, SSAValue]:
    """The divisor with 1 in place of 0 and of -1 under INT_MIN, and when that was needed."""
    known = _constant(b)
    if known is not None and known != 0 and (known != (1 << t.bits) - 1 or not t.is_signed) and known != -1:
        return _Bad(None, None), b
    one = e.b.integer(1, b.type)
    zero = e.b.cmpi("eq", b, e.b.integer(0, b.type))
    overflow = None
    replaced = zero
    if t.is_signed:
        lowest = e.b.cmpi("eq", a, e.b.integer(-(1 << (t.bits - 1)), a.type))
        overflow = e.b.op(arith.AndIOp, lowest, e.b.cmpi("eq", b, e.b.integer(-1, b.type)))
        replaced = e.b.op(arith.OrIOp, zero, overflow)
    return _Bad(zero, overflow), e.b.select(replaced, one, b)


def _constant(value: SSAValue) -> int | None:
    op = value.owner
    if not isinstance(op, arith.ConstantOp):
        return None
    return getattr(getattr(op.properties["value"], "value", None), "data", None)


@rule("negate")
def _negate(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    a, t = e.operand(i, 0, index), i.shape.element_type
    if t.is_complex:
        return complex_rules.negate(e, pair_of(a))
    a = scalar_of(a)
    if t.is_float:
        return narrow(e, e.b.op(arith.NegfOp, widen(e, a, t)), t)
    return e.b.op(arith.SubiOp, e.b.integer(0, a.type), a)


@rule("abs")
def _abs(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    a, t = e.operand(i, 0, index), i.operands[0].shape.element_type
    if t.is_complex:
        return complex_rules.absolute(e, pair_of(a))
    a = scalar_of(a)
    if t.is_float:
        return narrow(e, e.b.op(math.AbsFOp, widen(e, a, t)), t)
    if not t.is_signed:
        return a
    negative = e.b.cmpi("slt", a, e.b.integer(0, a.type))
    return e.b.select(negative, e.b.op(arith.SubiOp, e.b.integer(0, a.type), a), a)


@rule("sign")
def _sign(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    a, t = e.operand(i, 0, index), i.shape.element_type
    if t.is_complex:
        return complex_rules.sign(e, pair_of(a))
    a = scalar_of(a)
    if t.is_float:
        wide = widen(e, a, t)
        zero, one = e.b.floating(0.0, wide.type), e.b.floating(1.0, wide.type)
        signed = e.b.op(math.CopySignOp, one, wide)
        # NaN stays NaN and zeros keep their sign: only a number below or above zero becomes one
        nonzero = e.b.cmpf("one", wide, zero)
        return e.b.select(nonzero, narrow(e, signed, t), a)
    zero, one = e.b.integer(0, a.type), e.b.integer(1, a.type)
    positive = e.b.select(e.b.cmpi("ne", a, zero), one, zero)
    if not t.is_signed:
        return positive
    return e.b.select(e.b.cmpi("slt", a, zero), e.b.integer(-1, a.type), positive)


@rule(*_ROUNDING)
def _round(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    t = i.shape.element_type
    return narrow(e, e.b.op(_ROUNDING[i.opcode], widen(e, e.operand(i, 0, index), t)), t)


@rule("mulhi")
def _mulhi(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    a, b = e.scalars(i, index)
    kind = arith.MulSIExtendedOp if i.shape.element_type.is_signed else arith.MulUIExtendedOp
    op = kind.create(operands=[a, b], result_types=[a.type, a.type])
    return e.b.add(op).results[1]


def integer_power(e: FunctionEmitter, base: SSAValue, exponent: SSAValue, t: ElementType) -> SSAValue:
    """`base ** exponent` modulo 2^n by squaring; a negative exponent gives 0 unless the base is 1 or -1."""
    b = e.b
    one, zero = b.integer(1, base.type), b.integer(0, base.type)

    def step(_: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        result, square, left = carried
        odd = b.cmpi("ne", b.op(arith.AndIOp, left, one), zero)
        product = b.select(odd, b.op(arith.MuliOp, result, square), result)
        return [product, b.op(arith.MuliOp, square, square), b.op(arith.ShRUIOp, left, one)]

    result = e.loop([t.bits], [one, base, exponent], step)[0]
    if not t.is_signed:
        return result
    minus_one = b.integer(-1, base.type)
    odd = b.cmpi("ne", b.op(arith.AndIOp, exponent, one), zero)
    flipped = b.select(odd, minus_one, one)
    of_one = b.select(b.cmpi("eq", base, one), one, zero)
    small = b.select(b.cmpi("eq", base, minus_one), flipped, of_one)
    return b.select(b.cmpi("slt", exponent, zero), small, result)
