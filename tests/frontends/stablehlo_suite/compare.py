"""Whether a pair of arrays passes a check, by the rules of StableHLO's own check operations."""

from __future__ import annotations

import numpy as np

from tests.frontends.stablehlo_suite.programs import Check

#: how far values may be apart and count as right all the same: of the largest magnitude, by the type's mantissa
_CLOSE = {52: 1e-8, 23: 1e-4, 10: 2e-2, 7: 2e-2}


def verdict(check: Check, got: np.ndarray, want: np.ndarray) -> tuple[str, str]:
    """``right``, ``close`` (beyond the check's own limit, within that of the type) or ``wrong``, and what differs."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return "wrong", f"{got.dtype}{list(got.shape)} instead of {want.dtype}{list(want.shape)}"
    a, b = _parts(got), _parts(want)
    same = (a == b) | (np.isnan(a) & np.isnan(b)) if a.dtype.kind == "f" else a == b
    if same.all():
        return "right", ""
    n = int(np.argmin(same.reshape(-1)))
    said = (
        f"{got.dtype} {a.reshape(-1)[n]!s} instead of {b.reshape(-1)[n]!s}, {int((~same).sum())} of {same.size} differ"
    )
    if check.rule == "equal" or a.dtype.kind != "f":
        return _loosely(got, a, b, same) if a.dtype.kind == "f" else "wrong", said
    if check.rule == "ulps":
        ulps = _ulps(got, want)
        return ("right" if ulps <= check.limit else _loosely(got, a, b, same)), f"{said}, {ulps:g} ulps"
    near = np.isclose(a, b, 0, check.limit, equal_nan=True).all()
    return ("right" if near else _loosely(got, a, b, same)), said


def _parts(array: np.ndarray) -> np.ndarray:
    """Real and imaginary parts, in a type NumPy computes in."""
    if array.dtype.kind == "c":
        array = np.stack([np.real(array), np.imag(array)])
    return array.astype(np.float64) if array.dtype.kind == "f" or "float" in array.dtype.name else array


def _loosely(got: np.ndarray, a: np.ndarray, b: np.ndarray, same: np.ndarray) -> str:
    import ml_dtypes

    component = np.dtype(f"f{got.dtype.itemsize // 2}") if got.dtype.kind == "c" else got.dtype
    bound = _CLOSE.get(ml_dtypes.finfo(component).nmant, 0.15)
    finite = np.isfinite(a) & np.isfinite(b)
    if not (same | finite).all():
        return "wrong"
    largest = np.abs(b[finite]).max(initial=0)
    return "close" if (np.abs(a - b)[finite] <= bound * largest).all() else "wrong"


def _ulps(got: np.ndarray, want: np.ndarray) -> float:
    """The largest distance in representable values; infinite where only one is finite."""
    width = got.dtype.itemsize // 2 if got.dtype.kind == "c" else got.dtype.itemsize
    a, b = (np.ascontiguousarray(x).reshape(-1).view(f"i{width}") for x in (got, want))
    a, b = (np.where(x < 0, np.iinfo(x.dtype).min - x, x).astype(object) for x in (a, b))
    x, y = (_parts(v) for v in (got, want))
    both = np.isfinite(x) & np.isfinite(y)
    if not (both | (x == y) | (np.isnan(x) & np.isnan(y))).all():
        return float("inf")
    flat = both.reshape(2, -1).T.reshape(-1) if got.dtype.kind == "c" else both.reshape(-1)
    return float(max((abs(p - q) for p, q, ok in zip(a, b, flat, strict=True) if ok), default=0))
