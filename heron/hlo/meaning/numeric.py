"""Scalar semantics on whole NumPy arrays: working types, integer wraparound, conversions, total order.

Rules of HLO that NumPy does not share: low-precision floats compute in f32 and round once, integers wrap,
integer division by zero gives all ones, shifts past the width give zeros (or the sign), float to integer saturates.
Source: https://openxla.org/xla/operation_semantics and https://openxla.org/stablehlo/spec.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from heron.hlo.ir.types import F8E8M0FNU, ElementType
from heron.hlo.meaning.rounding import rounded

#: stored dtypes NumPy computes with as they are
_NATIVE = frozenset(
    np.dtype(t)
    for t in (
        np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64,
        np.float32, np.float64, np.complex64, np.complex128,
    )
)  # fmt: skip
_WORKING: dict[np.dtype, np.dtype] = {
    **{np.dtype(t): np.dtype(np.int8) for t in (ml_dtypes.int1, ml_dtypes.int2, ml_dtypes.int4)},
    **{np.dtype(t): np.dtype(np.uint8) for t in (ml_dtypes.uint1, ml_dtypes.uint2, ml_dtypes.uint4)},
}
_PRECISE = {np.dtype(np.float64): np.dtype(np.float64), np.dtype(np.complex64): np.dtype(np.complex128)}
_PRECISE[np.dtype(np.complex128)] = np.dtype(np.complex128)


def working(x: np.ndarray) -> np.ndarray:
    """`x` in the type arithmetic is done in: f32 for narrower floats, 8 bits for narrower integers."""
    dtype = x.dtype
    return x if dtype in _NATIVE else x.astype(_WORKING.get(dtype, np.dtype(np.float32)))


def precise(x: np.ndarray) -> np.ndarray:
    """A float or complex `x` with f64 parts."""
    return x.astype(_PRECISE.get(x.dtype, np.dtype(np.float64)), copy=False)


def settle(x: np.ndarray, t: ElementType) -> np.ndarray:
    """A result computed in a working type, rounded or wrapped to type `t`."""
    if x.dtype is t.dtype:
        return x
    if t.is_float:
        return rounded(x, t)
    return wrap(x, t) if t.bits < 8 else x.astype(t.dtype)


def wrap(x: np.ndarray, t: ElementType) -> np.ndarray:
    """Integers modulo 2**bits, as stored values of type `t`."""
    if t.bits >= 8:
        return x.astype(t.dtype)
    low = x.astype(np.int64) & ((1 << t.bits) - 1)
    if t.is_signed:
        sign = 1 << (t.bits - 1)
        low = (low ^ sign) - sign
    return low.astype(np.int8).astype(t.dtype)


def lift(fn: Callable[..., Any], t: ElementType, *arrays: np.ndarray) -> np.ndarray:
    """``fn`` on working types, the result settled to `t`."""
    return settle(np.asarray(fn(*map(working, arrays))), t)


def lift_precise(fn: Callable[..., Any], t: ElementType, *arrays: np.ndarray) -> np.ndarray:
    """``fn`` in f64 (c128), rounded once to `t`: the correctly rounded value, but for the error of ``fn``."""
    return settle(np.asarray(fn(*map(precise, arrays))), t)


# -- integers --------------------------------------------------------------------------------------------------------
def bounds(t: ElementType) -> tuple[int, int]:
    """Least and greatest value of an integer type."""
    return (-(1 << (t.bits - 1)), (1 << (t.bits - 1)) - 1) if t.is_signed else (0, (1 << t.bits) - 1)


def divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Integer division towards zero; ``x / 0`` is all ones, ``INT_MIN / -1`` is INT_MIN."""
    zero = b == 0
    safe = np.where(zero, b.dtype.type(1), b)
    quotient = a // safe
    if a.dtype.kind == "i":  # from floor to truncation
        inexact = quotient * safe != a
        quotient = quotient + (inexact & ((a < 0) != (safe < 0))).astype(a.dtype)
    return np.where(zero, ~np.zeros((), a.dtype), quotient)


def remainder(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Integer remainder with the dividend's sign; ``x % 0`` is x."""
    zero = b == 0
    return np.where(zero, a, np.fmod(a, np.where(zero, b.dtype.type(1), b)))


def power(a: np.ndarray, b: np.ndarray, bits: int) -> np.ndarray:
    """Integer power modulo 2**bits; a negative exponent gives 1/base truncated, 0 for base zero."""
    negative = b < 0
    a, b = np.broadcast_arrays(a, b)
    result, base, left = np.ones_like(a), a, np.where(negative, b.dtype.type(0), b)
    for _ in range(bits):
        if not left.any():
            break
        result = np.where(left & left.dtype.type(1), result * base, result)
        base, left = base * base, left >> left.dtype.type(1)
    if not negative.any():
        return result
    one = a.dtype.type(1)
    odd = (b & one).astype(bool)
    inverse = np.where(a == one, one, np.where(a == -one, np.where(odd, -one, one), a.dtype.type(0)))
    return np.where(negative, inverse, result)


def shift(a: np.ndarray, by: np.ndarray, t: ElementType, kind: str) -> np.ndarray:
    """``kind``: left, logical (zeros come in) or arithmetic (the sign comes in). Amounts count as unsigned."""
    bits = t.bits
    out = (by < 0) | (by >= bits)
    amount = np.where(out, by.dtype.type(0), by)
    if kind == "left":
        return np.where(out, a.dtype.type(0), np.left_shift(a, amount))
    unsigned = a.dtype.str.replace("i", "u")
    if kind == "logical":
        pattern = a.view(unsigned) & np.array((1 << bits) - 1, unsigned)
        return np.where(out, a.dtype.type(0), np.right_shift(pattern, amount.view(unsigned)).view(a.dtype))
    signed = a.dtype.str.replace("u", "i")
    value = a.view(signed)
    if not t.is_signed and bits < a.dtype.itemsize * 8:
        sign = 1 << (bits - 1)
        value = (value ^ np.array(sign, signed)) - np.array(sign, signed)
    amount = np.where(out, by.dtype.type(bits - 1), by).view(signed)
    return np.right_shift(value, amount).view(a.dtype)


def multiply_high(a: np.ndarray, b: np.ndarray, t: ElementType) -> np.ndarray:
    """The upper half of the double-width product."""
    if t.bits < 64:
        wide = np.int64 if t.is_signed else np.uint64
        return (a.astype(wide) * b.astype(wide) >> np.array(t.bits, wide)).astype(a.dtype)
    product = a.astype(object) * b.astype(object) >> 64
    return np.asarray(product, dtype=object).astype(a.dtype)


def popcount(a: np.ndarray, t: ElementType) -> np.ndarray:
    """Number of one bits."""
    pattern = a.view(a.dtype.str.replace("i", "u")).astype(np.uint64) & np.uint64((1 << t.bits) - 1)
    return np.bitwise_count(pattern).astype(a.dtype)


def leading_zeros(a: np.ndarray, t: ElementType) -> np.ndarray:
    """Number of zero bits above the highest one bit."""
    pattern = a.view(a.dtype.str.replace("i", "u")).astype(np.uint64) & np.uint64((1 << t.bits) - 1)
    for by in (1, 2, 4, 8, 16, 32):  # all bits below the highest one set
        pattern = pattern | (pattern >> np.uint64(by))
    return (t.bits - np.bitwise_count(pattern).astype(np.int64)).astype(a.dtype)


# -- order -----------------------------------------------------------------------------------------------------------
def maximum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The greater; NaN when either is; 0 is greater than -0."""
    result = np.maximum(a, b)
    return result if a.dtype.kind != "f" else _zeros(a, b, result, a + b)


def minimum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The lesser; NaN when either is; -0 is less than 0."""
    result = np.minimum(a, b)
    return result if a.dtype.kind != "f" else _zeros(a, b, result, -(-a - b))


def _zeros(a: np.ndarray, b: np.ndarray, result: np.ndarray, zero: np.ndarray) -> np.ndarray:
    """`result`, but `zero` where both operands are."""
    return np.where((a == 0) & (b == 0), zero, result)


def ranked(x: np.ndarray, nan_last: bool) -> np.ndarray:
    """f32 or f64 as integers in the order of `maximum` (NaN last) or `minimum` (NaN first)."""
    x = np.where(np.isnan(x), np.copysign(x.dtype.type(np.nan), 1 if nan_last else -1), x)
    return _ranks(x.view(f"i{x.itemsize}"))


def unranked(ranks: np.ndarray) -> np.ndarray:
    """The floats whose ranks these are."""
    return _ranks(ranks).view(f"f{ranks.itemsize}")


def _ranks(bits: np.ndarray) -> np.ndarray:
    """Sign and magnitude as two's complement, and the reverse."""
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


def total_order(x: np.ndarray, t: ElementType) -> np.ndarray:
    """Integers ordered as IEEE's totalOrder has the floats: -NaN < -inf < ... < -0 < 0 < ... < inf < NaN.

    The one NaN of the fnuz types has the sign bit set, so it comes first; f8e8m0fnu has no sign.
    """
    if not t.is_float:
        return working(x)
    x = np.asarray(x, order="C")
    if t is F8E8M0FNU:
        return x.view(np.uint8)
    bits = x.view(f"i{t.byte_size}")
    if t.bits < 8:  # sign and magnitude in the low bits
        bits = np.where(bits & (1 << (t.bits - 1)), bits | -(1 << t.bits), bits).astype(np.int8)
    if t.name.endswith("fnuz"):  # no -0, whose rank is free
        return np.where(bits == np.int8(-128), bits, _ranks(bits) + (bits < 0))
    return _ranks(bits)


# -- conversions -----------------------------------------------------------------------------------------------------
def convert(x: np.ndarray, source: ElementType, to: ElementType) -> np.ndarray:
    """Values of type `source` as type `to`: integers wrap, floats round, float to integer truncates and saturates."""
    if source is to:
        return x
    if source.is_complex and not to.is_complex:
        x, source = np.real(x), source.component
    if to.kind == "pred":
        return working(x) != 0
    if source.is_float and to.is_integer:
        return saturate(np.trunc(precise(x)), to)
    if to.is_integer:
        return wrap(working(x), to)
    return rounded(working(x), to) if to.is_float else working(x).astype(to.dtype)


def saturate(x: np.ndarray, t: ElementType) -> np.ndarray:
    """Whole f64 values as integers of type `t`: NaN gives 0, what is out of range the nearest bound."""
    low, high = bounds(t)
    under, over = x <= low, x >= high
    holder = t.dtype if t.bits >= 8 else np.dtype(np.int8)
    inside = np.where(under | over | np.isnan(x), 0.0, x).astype(holder)
    result = np.where(under, np.array(low, holder), np.where(over, np.array(high, holder), inside))
    return result.astype(t.dtype)


def extreme(t: ElementType, lowest: bool) -> Any:
    """The lowest or the highest value of a type, an infinity for floats; None for types that have none."""
    match t.kind:
        case "float":
            value = np.asarray(-np.inf if lowest else np.inf).astype(t.dtype)
            return value[()] if np.isinf(value.astype(np.float64)) else None
        case "signed":
            return -(1 << (t.bits - 1)) if lowest else (1 << (t.bits - 1)) - 1
        case "unsigned":
            return 0 if lowest else (1 << t.bits) - 1
        case "pred":
            return not lowest
    return None
