"""Index expressions as arith ops on `index`.

Ranges decide the cheap forms: a `floordiv` or `mod` by a power of two is a shift or a mask, one of a non-negative
value below 2^31 is done in 32 bits (LLVM turns it into a multiplication that vectorises), a possibly negative value is
first moved up by a multiple of the divisor.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from heron.analysis.indexing import Add, Const, Expr, FloorDiv, Mod, Mul, Simplifier
from heron.codegen.transforms.lib.build import I32, INDEX, NSW, NSW_NUW, Inserter


def emit(e: Expr, leaf: Callable[[Expr], SSAValue], ranges: Simplifier, place: Inserter) -> SSAValue:
    """The value of `e`, with `leaf` giving the value of each variable.

    Args:
        ranges: knows the range of every variable; `e` should already be simplified with it.
    """
    if isinstance(e, Const):
        return place.const(e.value)
    if isinstance(e, Add):
        return _add(e, leaf, ranges, place)
    if isinstance(e, Mul):
        lhs, rhs = emit(e.lhs, leaf, ranges, place), emit(e.rhs, leaf, ranges, place)
        positive = ranges.range_of(e.lhs)[0] >= 0 and ranges.range_of(e.rhs)[0] >= 0
        return place.binary(arith.MuliOp, lhs, rhs, NSW_NUW if positive else NSW)
    if isinstance(e, (FloorDiv, Mod)):
        return _divide(e, leaf, ranges, place)
    return leaf(e)


def _add(e: Add, leaf: Callable[[Expr], SSAValue], ranges: Simplifier, place: Inserter) -> SSAValue:
    if _is_negative(e.lhs) and not _is_negative(e.rhs):  # a * -c + b == b - a * c
        e = Add(e.rhs, e.lhs)
    lhs, term = emit(e.lhs, leaf, ranges, place), e.rhs
    if isinstance(term, Mul) and isinstance(term.rhs, Const) and term.rhs.value < 0:
        factor = -term.rhs.value  # a + b * -c == a - b * c
        rhs = emit(term.lhs, leaf, ranges, place)
        if factor != 1:
            rhs = place.binary(arith.MuliOp, rhs, place.const(factor), NSW)
        return place.binary(arith.SubiOp, lhs, rhs, NSW)
    positive = ranges.range_of(e.lhs)[0] >= 0 and ranges.range_of(term)[0] >= 0
    rhs = emit(term, leaf, ranges, place)
    return place.binary(arith.AddiOp, lhs, rhs, NSW_NUW if positive else NSW)


def _is_negative(e: Expr) -> bool:
    return isinstance(e, Mul) and isinstance(e.rhs, Const) and e.rhs.value < 0


def _divide(e: FloorDiv | Mod, leaf: Callable[[Expr], SSAValue], ranges: Simplifier, place: Inserter) -> SSAValue:
    assert isinstance(e.rhs, Const)
    c, is_div = e.rhs.value, isinstance(e, FloorDiv)
    value = emit(e.lhs, leaf, ranges, place)
    lo, hi = ranges.range_of(e.lhs)
    if c & (c - 1) == 0:
        if not is_div:
            return place.binary(arith.AndIOp, value, place.const(c - 1))
        shift = arith.ShRUIOp if lo >= 0 else arith.ShRSIOp
        return place.binary(shift, value, place.const(c.bit_length() - 1))
    offset = 0
    if lo < 0:  # x floordiv c == (x + kc) floordiv c - k
        offset = -(lo // c)
        value = place.binary(arith.AddiOp, value, place.const(offset * c), NSW)
        hi += offset * c
    result = _unsigned(arith.DivUIOp if is_div else arith.RemUIOp, value, c, hi, place)
    if offset and is_div:
        return place.binary(arith.SubiOp, result, place.const(offset), NSW)
    return result


def _unsigned(
    op: type[arith.DivUIOp] | type[arith.RemUIOp], value: SSAValue, c: int, hi: int, place: Inserter
) -> SSAValue:
    if hi >= 2**31:
        return place.binary(op, value, place.const(c))
    narrow = place.unary(arith.IndexCastOp, value, I32)
    result = place.binary(op, narrow, place.const(c, I32))
    return place.unary(arith.IndexCastOp, result, INDEX)  # non-negative, so the sign extension is exact
