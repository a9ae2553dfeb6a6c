"""Input values of every element type: corner cases, and tame ones that survive most functions."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from heron.hlo.ir import types
from heron.hlo.ir.types import ElementType

#: every type arrays can have
TYPES: tuple[ElementType, ...] = tuple(t for t in types.ALL if t.kind not in ("token", "opaque"))
#: one type of each way code is made for
FEW = tuple(
    types.by_name(n) for n in ("pred", "s4", "u8", "s64", "f4e2m1fn", "f8e4m3fnuz", "bf16", "f32", "f64", "c64")
)
_REAL = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 3.0, 0.1, -7.3, 100.0, 239.0, 6e4, -129.0, 1e-3, 1e-7, 3e9, -3e9]
_REAL += [1e30, -1e-30, np.inf, -np.inf, np.nan]
#: values that round twice where one rounding is due, and denormals of f16
_HALVES = [-94.65625000000001, -15.250000000000002, 15.25, 53248.00000000001, 6e-8, 3e-5, 5.9e-5]
#: integers on and beside the halves of bf16 and f16, and corner cases of shifts
_WHOLE = [0, 1, 2, 3, 5, 7, 8, 15, 31, 32, 63, 64, 100, -1, -2, -3, -7, 16842753, -16842753, 16842752, 16908289]
_WHOLE += [0x0101_0000_0000_0001, 0x0101_0000_0000_0000, 1 << 53, (1 << 53) + 1]


def bounds(t: ElementType) -> tuple[int, int]:
    """Least and greatest value of an integer type."""
    return (-(1 << (t.bits - 1)), (1 << (t.bits - 1)) - 1) if t.is_signed else (0, (1 << t.bits) - 1)


def specials(t: ElementType) -> np.ndarray:
    """Corner cases and a few ordinary values; of the smallest types, every value."""
    if t is types.PRED:
        return np.array([False, True])
    if t.is_complex:
        parts = np.array([0.0, -0.0, 1.0, -2.5, 3e3, np.inf, -np.inf, np.nan, 1e-3])
        return np.array([complex(a, b) for a in parts for b in parts], t.dtype)
    if t.is_integer:
        low, high = bounds(t)
        wanted = range(low, high + 1) if t.bits <= 4 else [*_WHOLE, low, low + 1, high - 1, high]
        wide = np.int64 if t.is_signed else np.uint64
        return np.array(sorted({v for v in wanted if low <= v <= high}), wide).astype(t.dtype)
    if t.bits == 4:
        return np.arange(16, dtype=np.uint8).view(t.dtype)
    info = ml_dtypes.finfo(t.dtype)
    edges = [float(info.max), float(info.min), float(info.tiny), float(info.smallest_subnormal)]
    with np.errstate(all="ignore"):
        return np.array([*_REAL, *_HALVES, *edges]).astype(t.dtype)


def tame(t: ElementType, count: int, seed: int = 0, above: float = 0.06, below: float = 0.94) -> np.ndarray:
    """Random values that few functions turn into NaN: floats between the bounds, integers of either sign."""
    rng = np.random.default_rng([seed, t.proto_id])
    if t is types.PRED:
        return rng.integers(0, 2, count).astype(np.bool_)
    if t.is_integer:
        low, high = bounds(t)
        return rng.integers(max(low, -50), min(high, 60), count, endpoint=True).astype(t.dtype)
    real = rng.uniform(above, below, count)
    with np.errstate(all="ignore"):
        return (real + 1j * rng.uniform(above, below, count) if t.is_complex else real).astype(t.dtype)
