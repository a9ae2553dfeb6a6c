"""Bitwise ops and shifts, compare, select, clamp, is-finite, bit counts.

Shifts by the width or more give 0 (the sign for shift-right-arithmetic). Clamp is min(max(x, lo), hi), NaN propagates.
"""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import SSAValue

from heron.analysis.indexing.hlo_maps import Index
from heron.codegen.elemental.arithmetic import binary
from heron.codegen.elemental.emitter import FunctionEmitter
from heron.codegen.elemental.floats import widen
from heron.codegen.elemental.registry import rule
from heron.codegen.elemental.values import Pair, Value, pair_of, scalar_of, tuple_of
from heron.hlo.ir import types
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import F8E8M0FNU, ElementType

_BITWISE = {"and": arith.AndIOp, "or": arith.OrIOp, "xor": arith.XOrIOp}


@rule(*_BITWISE)
def _bitwise(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    a, b = e.scalars(i, index)
    return e.b.op(_BITWISE[i.opcode], a, b)


@rule("not")
def _not(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    (a,) = e.scalars(i, index)
    return e.b.op(arith.XOrIOp, a, e.b.integer(-1, a.type))


@rule("shift-left", "shift-right-logical", "shift-right-arithmetic")
def _shift(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    a, amount = e.scalars(i, index)
    bits = i.shape.element_type.bits
    last = e.b.integer(bits - 1, a.type)
    within = e.b.cmpi("ule", amount, last)
    if i.opcode == "shift-right-arithmetic":
        return e.b.op(arith.ShRSIOp, a, e.b.select(within, amount, last))
    kind = arith.ShLIOp if i.opcode == "shift-left" else arith.ShRUIOp
    # the machine leaves too large a shift undefined; the select throws it away
    return e.b.select(within, e.b.op(kind, a, amount), e.b.integer(0, a.type))


@rule("popcnt", "count-leading-zeros")
def _count_bits(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    kind = math.CtPopOp if i.opcode == "popcnt" else math.CountLeadingZerosOp
    return e.b.op(kind, *e.scalars(i, index))


@rule("is-finite")
def _is_finite(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    t = i.operands[0].shape.element_type
    wide = widen(e, e.operand(i, 0, index), t)
    return e.b.cmpf("olt", e.b.op(math.AbsFOp, wide), e.b.floating(float("inf"), wide.type))


@rule("compare")
def _compare(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    a, b = e.operands(i, index)
    return compare(e, i.direction, a, b, i.operands[0].shape.element_type, i.type == "TOTALORDER")


def compare(e: FunctionEmitter, direction: str, a: Value, b: Value, t: ElementType, total: bool = False) -> SSAValue:
    """An `i1`: `a` direction (EQ NE GE GT LE LT) `b`. With `total`, -NaN < -inf < … < -0 < 0 < … < inf < NaN."""
    d = direction.lower()
    if t.is_complex:
        return _compare_complex(e, d, pair_of(a), pair_of(b))
    a, b = scalar_of(a), scalar_of(b)
    if t.is_float:
        if total:
            sign = "u" if t is F8E8M0FNU else "s"
            return e.b.cmpi(d if d in ("eq", "ne") else sign + d, total_key(e, a, t), total_key(e, b, t))
        return e.b.cmpf("une" if d == "ne" else f"o{d}", widen(e, a, t), widen(e, b, t))
    if d in ("eq", "ne"):
        return e.b.cmpi(d, a, b)
    return e.b.cmpi(("s" if t.is_signed else "u") + d, a, b)


def _compare_complex(e: FunctionEmitter, d: str, a: Pair, b: Pair) -> SSAValue:
    kind, predicate = (arith.OrIOp, "une") if d == "ne" else (arith.AndIOp, "oeq")
    return e.b.op(kind, e.b.cmpf(predicate, a.re, b.re), e.b.cmpf(predicate, a.im, b.im))


def total_key(e: FunctionEmitter, value: SSAValue, t: ElementType) -> SSAValue:
    """An integer that orders as the float's bits do: all bits but the sign flipped when negative.

    f8e8m0fnu has no sign; the one NaN of the fnuz types comes first.
    """
    bits = IntegerType(t.bits)
    as_int = e.b.op(arith.BitcastOp, value, type=bits)
    if t is F8E8M0FNU:
        return as_int
    sign = e.b.op(arith.ShRSIOp, as_int, e.b.integer(t.bits - 1, bits))
    mask = e.b.op(arith.ShRUIOp, sign, e.b.integer(1, bits))
    key = e.b.op(arith.XOrIOp, as_int, mask)
    if not t.name.endswith("fnuz"):
        return key
    key = e.b.op(arith.SubiOp, key, sign)  # there is no -0, whose rank is free
    nan = e.b.integer(-(1 << (t.bits - 1)), bits)
    return e.b.select(e.b.cmpi("eq", as_int, nan), nan, key)


@rule("select")
def _select(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    condition, yes, no = e.operands(i, index)
    return select(e, scalar_of(condition), yes, no)


def select(e: FunctionEmitter, condition: SSAValue, yes: Value, no: Value) -> Value:
    """One of two values of any kind."""
    if isinstance(yes, Pair):
        no = pair_of(no)
        return Pair(e.b.select(condition, yes.re, no.re), e.b.select(condition, yes.im, no.im))
    if isinstance(yes, tuple):
        return tuple(select(e, condition, a, b) for a, b in zip(yes, tuple_of(no), strict=True))
    return e.b.select(condition, yes, scalar_of(no))


@rule("clamp")
def _clamp(e: FunctionEmitter, i: Instruction, index: Index) -> Value:
    low, x, high = e.operands(i, index)
    t = i.shape.element_type
    assert t is not types.PRED
    return binary(e, "minimum", binary(e, "maximum", x, low, t), high, t)
