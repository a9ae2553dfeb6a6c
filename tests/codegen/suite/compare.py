"""Whether two arrays are the same: bit for bit, or within the last places of a transcendental function."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from heron.hlo.ir import types


def difference(got: np.ndarray, want: np.ndarray, ulps: float = 0.0, least: float = 0.0) -> str:
    """The first elements that differ by more units of the last place, or ''. NaN equals NaN; zeros differ by sign.

    Units of complex numbers are those of their modulus, or of `least` where that is smaller.
    """
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{got.shape} instead of {want.dtype}{want.shape}"
    with np.errstate(all="ignore"):
        wrong = _wrong(got, want, ulps, least)
    at = np.argwhere(wrong)
    cases = [f"{tuple(map(int, where))}: {got[tuple(where)]} instead of {want[tuple(where)]}" for where in at[:3]]
    return f"{len(at)} of {want.size}: " + "; ".join(cases) if cases else ""


def _wrong(got: np.ndarray, want: np.ndarray, ulps: float, least: float) -> np.ndarray:
    t = types.of_dtype(got.dtype)
    if not (t.is_float or t.is_complex):
        return got != want
    if t.is_complex:
        return _wrong_complex(got, want, ulps, least)
    a, b = got.astype(np.float64), want.astype(np.float64)
    same = (a == b) & (np.signbit(a) == np.signbit(b)) | np.isnan(a) & np.isnan(b)
    if t is types.F8E8M0FNU and ulps:  # NaN stands for 0, which is beside the least number
        a, b = (np.where(np.isnan(x), 0, x) for x in (a, b))
    return ~same & ~_near(a, b, _unit(b, t), ulps)


def _near(a: np.ndarray, b: np.ndarray, unit: np.ndarray, ulps: float) -> np.ndarray:
    """Both finite and not further apart than that."""
    with np.errstate(all="ignore"):
        return np.isfinite(a) & np.isfinite(b) & (np.abs(a - b) <= ulps * unit)


def _unit(x: np.ndarray, t: types.ElementType) -> np.ndarray:
    """The distance of floats of type `t` around `x`."""
    info = ml_dtypes.finfo(t.dtype)
    exponent = np.frexp(np.abs(x))[1] - 1
    return np.ldexp(1.0, np.maximum(exponent, info.minexp) - info.nmant)


def _wrong_complex(got: np.ndarray, want: np.ndarray, ulps: float, least: float) -> np.ndarray:
    """Parts that are not finite must be the same; finite ones within a few units of the modulus.

    C leaves the sign of an infinity beside a NaN open.
    """
    t = types.F32 if got.dtype == np.complex64 else types.F64
    size = np.hypot(*(np.where(np.isfinite(part), part, 0).astype(np.float64) for part in (want.real, want.imag)))
    size = np.maximum(size, least)
    wrong = np.zeros(got.shape, bool)
    for g, w, other in ((got.real, want.real, want.imag), (got.imag, want.imag, want.real)):
        same = (g == w) | np.isnan(g) & np.isnan(w) | np.isnan(other) & (np.abs(g) == np.abs(w))
        wrong |= ~same & ~_near(g.astype(np.float64), w.astype(np.float64), _unit(size, t), ulps)
    return wrong
