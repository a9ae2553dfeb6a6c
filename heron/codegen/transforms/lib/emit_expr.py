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
from heron.codegen.ir.builder import NSW, NSW_NUW, Builder
from heron.codegen.ir.types import I32, INDEX


def emit(e: Expr, leaf: Callable[[Expr], SSAValue], ranges: Simplifier, builder: Builder) -> SSAValue:
    """The value of `e`, with `leaf` giving the value of each variable.

    Args:
        ranges: knows the range of every variable; `e` should already be simplified with it.
    """
    if isinstance(e, Const):
        return builder.integer(e.value)
    if isinstance(e, Add):
        return _add(e, leaf, ranges, builder)
    if isinstance(e, Mul):
        lhs, rhs = emit(e.lhs, leaf, ranges, builder), emit(e.rhs, leaf, ranges, builder)
        positive = ranges.range_of(e.lhs)[0] >= 0 and ranges.range_of(e.rhs)[0] >= 0
        return builder.op(arith.MuliOp, lhs, rhs, properties=NSW_NUW if positive else NSW)
    if isinstance(e, (FloorDiv, Mod)):
        return _divide(e, leaf, ranges, builder)
    return leaf(e)


def _add(e: Add, leaf: Callable[[Expr], SSAValue], ranges: Simplifier, builder: Builder) -> SSAValue:
    if _is_negative(e.lhs) and not _is_negative(e.rhs):  # a * -c + b == b - a * c
        e = Add(e.rhs, e.lhs)
    lhs, term = emit(e.lhs, leaf, ranges, builder), e.rhs
    if isinstance(term, Mul) and isinstance(term.rhs, Const) and term.rhs.value < 0:
        factor = -term.rhs.value  # a + b * -c == a - b * c
        rhs = emit(term.lhs, leaf, ranges, builder)
        if factor != 1:
            rhs = builder.op(arith.MuliOp, rhs, builder.integer(factor), properties=NSW)
        return builder.op(arith.SubiOp, lhs, rhs, properties=NSW)
    positive = ranges.range_of(e.lhs)[0] >= 0 and ranges.range_of(term)[0] >= 0
    rhs = emit(term, leaf, ranges, builder)
    return builder.op(arith.AddiOp, lhs, rhs, properties=NSW_NUW if positive else NSW)


def _is_negative(e: Expr) -> bool:
    return isinstance(e, Mul) and isinstance(e.rhs, Const) and e.rhs.value < 0


def _divide(e: FloorDiv | Mod, leaf: Callable[[Expr], SSAValue], ranges: Simplifier, builder: Builder) -> SSAValue:
    assert isinstance(e.rhs, Const)
    c, is_div = e.rhs.value, isinstance(e, FloorDiv)
    value = emit(e.lhs, leaf, ranges, builder)
    lo, hi = ranges.range_of(e.lhs)
    if c & (c - 1) == 0:
        if not is_div:
            return builder.op(arith.AndIOp, value, builder.integer(c - 1))
        shift = arith.ShRUIOp if lo >= 0 else arith.ShRSIOp
        return builder.op(shift, value, builder.integer(c.bit_length() - 1))
    offset = 0
    if lo < 0:  # x floordiv c == (x + kc) floordiv c - k
        offset = -(lo // c)
        value = builder.op(arith.AddiOp, value, builder.integer(offset * c), properties=NSW)
        hi += offset * c
    result = _unsigned(arith.DivUIOp if is_div else arith.RemUIOp, value, c, hi, builder)
    if offset and is_div:
        return builder.op(arith.SubiOp, result, builder.integer(offset), properties=NSW)
    return result


def _unsigned(
    op: type[arith.DivUIOp] | type[arith.RemUIOp], value: SSAValue, c: int, hi: int, builder: Builder
) -> SSAValue:
    if hi >= 2**31:
        return builder.op(op, value, builder.integer(c))
    narrow = builder.op(arith.IndexCastOp, value, type=I32)
    result = builder.op(op, narrow, builder.integer(c, I32))
    return builder.op(arith.IndexCastOp, result, type=INDEX)  # non-negative, so the sign extension is exact
