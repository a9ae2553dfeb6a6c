"""Inputs where ops go wrong: for every element type its corners, and arrays of them for ops of one to three operands."""

from __future__ import annotations

from functools import cache

import ml_dtypes
import numpy as np

from heron.hlo.ir import types
from heron.hlo.ir.types import ElementType

#: names by family; the oracle has no one-bit integers (StableHLO's i1 is a pred)
SIGNED = "s2 s4 s8 s16 s32 s64".split()
UNSIGNED = "u2 u4 u8 u16 u32 u64".split()
INTEGERS = SIGNED + UNSIGNED
TINY = "f4e2m1fn f8e3m4 f8e4m3 f8e4m3fn f8e4m3b11fnuz f8e4m3fnuz f8e5m2 f8e5m2fnuz f8e8m0fnu".split()
FLOATS = [*TINY, "f16", "bf16", "f32", "f64"]
COMPLEX = ["c64", "c128"]
NUMBERS = INTEGERS + FLOATS + COMPLEX
ALL = ["pred", *NUMBERS]

_PLAIN = [
    1,
    1.5,
    2,
    2.5,
    0.5,
    0.25,
    0.49999997,
    0.9999999,
    1.0000001,
    3.25,
    7.75,
    10,
    88.8,
    100.5,
    710,
    4097,
    1e-3,
    1e-8,
]
_PLAIN += [3.1415927, 1.5707964, 0.7853982, 2.7182817, 8388609, 1e10, 1e19, 1e30, 1e-30]


@cache
def corners(name: str) -> np.ndarray:
    """The corners of a type: zeros, ends of the range, denormals, halves, infinities, NaNs, shift amounts."""
    t = types.by_name(name)
    if t.kind == "pred":
        return np.array([False, True])
    if t.is_integer:
        return _integers(t)
    if t.is_complex:
        parts = corners(t.component.name)
        some = parts[np.isin(np.arange(parts.size) % 5, (0, 2))]
        real, imaginary = (x.reshape(-1) for x in np.meshgrid(some, some))
        return pair(real, imaginary, t)
    return every(name) if t.bits == 4 else _floats(t)


@cache
def every(name: str) -> np.ndarray:
    """All values of a type of at most 16 bits, by their bits."""
    t = types.by_name(name)
    if t.kind == "pred":
        return corners(name)
    if t.bits < 8 and t.is_integer:
        low = -(1 << (t.bits - 1)) if t.is_signed else 0
        return np.arange(low, low + (1 << t.bits)).astype(t.dtype)
    return np.arange(1 << t.bits).astype(f"u{t.byte_size}").view(t.dtype)


@cache
def scattered(name: str, count: int, seed: int = 0) -> np.ndarray:
    """Values with random bits, so of all magnitudes."""
    t = types.by_name(name)
    if t.bits < 8 or t.kind == "pred":
        return np.resize(every(name), count)
    octets = np.random.default_rng(seed).integers(0, 256, count * t.byte_size, dtype=np.uint8)
    return octets.view(t.dtype)


def moderate(name: str, count: int, seed: int = 0, spread: float = 4.0) -> np.ndarray:
    """Floats or complex numbers of magnitude about 1, normally distributed."""
    t = types.by_name(name)
    random = np.random.default_rng(seed)
    drawn = random.normal(size=count) * spread
    return (drawn + 1j * random.normal(size=count) * spread if t.is_complex else drawn).astype(t.dtype)


def pair(real: np.ndarray, imaginary: np.ndarray, t: ElementType) -> np.ndarray:
    """Complex numbers from parts, without arithmetic on them."""
    result = np.empty(np.broadcast_shapes(real.shape, imaginary.shape), t.dtype)
    result.real, result.imag = real, imaginary
    return result


def grid(*values: np.ndarray) -> list[np.ndarray]:
    """Every combination, flat."""
    at = np.meshgrid(*[np.arange(v.size) for v in values], indexing="ij")
    return [v[a.reshape(-1)] for v, a in zip(values, at, strict=True)]


def _integers(t: ElementType) -> np.ndarray:
    if t.bits <= 4:
        return every(t.name)
    low, high = (-(1 << (t.bits - 1)), (1 << (t.bits - 1)) - 1) if t.is_signed else (0, (1 << t.bits) - 1)
    values = {low, low + 1, high, high - 1, high // 2, high // 3, 0, 1, 2, 3, 5, 7, 10}
    values |= {-1, -2, -3, -7, low // 2} if t.is_signed else set()
    values |= {t.bits - 1, t.bits, t.bits + 1}
    return np.array(sorted(values), np.int64 if t.is_signed else np.uint64).astype(t.dtype)


def _floats(t: ElementType) -> np.ndarray:
    info = ml_dtypes.finfo(t.dtype)
    least, normal, most = (float(x) for x in (info.smallest_subnormal, info.smallest_normal, info.max))
    step = 2.0 ** -int(info.nmant)
    magnitudes = [0.0, least, 3 * least, normal - least, normal, most, most / 2, 1 + step, 1 - step / 2, *_PLAIN]
    with np.errstate(all="ignore"):
        values = np.array([s * m for m in magnitudes if m <= most for s in (1, -1)]).astype(t.dtype)
        special = np.array([np.inf, -np.inf]).astype(t.dtype)
    patterns = np.concatenate([values, special]).view(f"u{t.byte_size}").tolist() + _nans(t)
    return np.array(list(dict.fromkeys(patterns)), f"u{t.byte_size}").view(t.dtype)


def _nans(t: ElementType) -> list[int]:
    """Bits of a few NaNs: quiet ones of both signs, and one with a payload."""
    if t.bits == 8:
        octets = every(t.name)
        return octets.view(np.uint8)[np.isnan(octets.astype(np.float32))].tolist()
    nan = int(np.array(np.nan).astype(t.dtype).view(f"u{t.byte_size}"))
    return [nan, nan | 1 << (t.bits - 1), nan | 5]
