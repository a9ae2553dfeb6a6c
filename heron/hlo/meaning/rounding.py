"""Rounding to floating-point formats, once and to nearest even, whatever the value was computed in."""

from __future__ import annotations

import numpy as np

from heron.hlo.ir.types import BF16, F8E8M0FNU, F16, F32, F64, ElementType

#: bits of mantissa and exponent
_FORMAT = {F16: (10, 5), BF16: (7, 8), F32: (23, 8), F64: (52, 11)}


def rounded(x: np.ndarray, t: ElementType) -> np.ndarray:
    """Numbers (native floats, integers or preds) as floats of type `t`.

    Beyond the range: infinity where the type has one, else NaN. Types of 4 and 6 bits have neither: they saturate, and
    NaN gives -0.
    """
    if t is F32 or t is F64:
        return x.astype(t.dtype)
    if x.dtype.kind in "iu":
        x = _integers_as_f64(x)
    if t is F16:
        return x.astype(np.float16)
    if x.dtype == np.float64:  # casts to narrower types go through f32
        x = _to_odd(x)
    if t.bits >= 8:
        return x.astype(t.dtype)
    return np.where(np.isnan(x), np.float32(-0.0), x).astype(t.dtype)


def _integers_as_f64(x: np.ndarray) -> np.ndarray:
    """Integers as f64 that round to narrower types as the integers do."""
    if x.dtype.itemsize < 8:
        return x.astype(np.float64)
    low = x.dtype.type(0xFFF)  # more bits than f64 drops, fewer than it has beyond f32
    sticky = np.where(x & low, x & ~low | x.dtype.type(0x800), x)
    exact = np.abs(x) < (1 << 52) if x.dtype.kind == "i" else x < (1 << 52)
    return np.where(exact, x, sticky).astype(np.float64)


def _to_odd(x: np.ndarray) -> np.ndarray:
    """f64 as f32, inexact values to the neighbour with an odd last bit: rounding that again rounds only once."""
    near = x.astype(np.float32)
    back = near.astype(np.float64)
    inexact = (back != x) & ~np.isnan(x)
    towards_zero = near.view(np.uint32) - (np.abs(back) > np.abs(x)).astype(np.uint32)
    return np.where(inexact, (towards_zero | np.uint32(1)).view(np.float32), near)


def reduce_precision(x: np.ndarray, t: ElementType, exponent_bits: int, mantissa_bits: int) -> np.ndarray:
    """`x` rounded to a float of fewer bits (to nearest even; too large: infinity; too small: zero), type kept.

    With no fewer exponent bits than the type has, its denormals stay. The 8-bit types are rounded as f16.
    """
    if t not in _FORMAT:
        wide = F32 if t is F8E8M0FNU else F16
        return rounded(reduce_precision(x.astype(wide.dtype), wide, exponent_bits, mantissa_bits).astype(F32.dtype), t)
    unsigned = np.dtype(f"u{t.byte_size}").type
    mantissa, exponent = _FORMAT[t]
    x = np.asarray(x, order="C")
    bits = x.view(unsigned)
    if mantissa_bits < mantissa:
        last = mantissa - mantissa_bits
        half = unsigned((1 << last >> 1) - 1)
        bits = bits + ((bits >> unsigned(last)) & unsigned(1)) + half
        bits = bits & ~unsigned((1 << last) - 1)
    if exponent_bits < exponent:
        bias, small = (1 << (exponent - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        sign = bits & unsigned(1 << (t.bits - 1))
        mask = unsigned(((1 << exponent) - 1) << mantissa)
        magnitude = bits & mask
        bits = np.where(magnitude > unsigned((bias + small) << mantissa), sign | mask, bits)
        bits = np.where(magnitude <= unsigned((bias - small) << mantissa), sign, bits)
    return np.where(np.isnan(x), x, bits.view(x.dtype))
