"""Compares outputs with expected ones: the errors of each output, and whether they are within tolerance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from heron.errors import HeronError
from heron.records import dataclass

_NARROW = 1e-2  # bf16, f16
#: relative tolerance by dtype name; the absolute one is that times the largest magnitude expected
_RTOL = {
    "float64": 1e-10,
    "complex128": 1e-10,
    "float32": 1e-5,
    "complex64": 1e-5,
    "float16": _NARROW,
    "bfloat16": _NARROW,
}
_F8_RTOL = 0.25  # two mantissa bits


@dataclass(frozen=True)
class Comparison:
    """The difference of one output from its expected value; `index` is the element that exceeds its bound most."""

    output: int
    dtype: str
    shape: tuple[int, ...]
    ok: bool
    mismatches: int
    max_abs: float
    max_rel: float
    max_ulp: float
    index: tuple[int, ...] | None
    actual: str
    expected: str
    rtol: float
    atol: float

    def to_json(self) -> dict[str, Any]:
        """All facts as plain JSON values."""
        return asdict(self)


def compare_all(
    actual: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    rtol: float | None = None,
    atol: float | None = None,
    source: str = "the file",
) -> list[Comparison]:
    """Compare output by output. Raises CLI032 when counts, dtypes or shapes differ."""
    if len(actual) != len(expected):
        raise HeronError("CLI032", f"the program gives {len(actual)} outputs, '{source}' holds {len(expected)}")
    return [compare(n, a, e, rtol, atol, source) for n, (a, e) in enumerate(zip(actual, expected, strict=True))]


def compare(
    number: int,
    actual: np.ndarray,
    expected: np.ndarray,
    rtol: float | None = None,
    atol: float | None = None,
    source: str = "the file",
) -> Comparison:
    """Compare one output; NaN equals NaN, an infinity only itself. Tolerances default by dtype, integers are exact."""
    if actual.dtype != expected.dtype and expected.dtype.kind in "Vu" and actual.dtype.itemsize == expected.itemsize:
        expected = expected.view(actual.dtype) if actual.dtype.kind not in "biufc" else expected
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        ours, theirs = f"{actual.dtype}{list(actual.shape)}", f"{expected.dtype}{list(expected.shape)}"
        raise HeronError("CLI032", f"output {number} is {ours}, '{source}' expects {theirs}")
    rtol, atol = tolerances(expected, rtol, atol)
    if actual.size == 0:
        return Comparison(number, actual.dtype.name, actual.shape, True, 0, 0, 0, 0, None, "", "", rtol, atol)
    error, bound, size = _errors(actual, expected, rtol, atol)
    wrong = ~(error <= bound)
    # of the places that are wrong the one furthest out, else the one with the largest error
    with np.errstate(all="ignore"):
        excess = np.where(wrong, np.nan_to_num(error - bound, nan=np.inf, posinf=np.inf), -1.0)
        worst = int(np.argmax(excess)) if wrong.any() else int(np.argmax(error))
        relative = np.where(error == 0, 0.0, error / size)
    index = tuple(int(k) for k in np.unravel_index(worst, actual.shape))
    return Comparison(
        output=number,
        dtype=actual.dtype.name,
        shape=actual.shape,
        ok=not wrong.any(),
        mismatches=int(wrong.sum()),
        max_abs=float(error.max()),
        max_rel=float(relative.max()),
        max_ulp=_max_ulp(actual, expected),
        index=index,
        actual=_text(actual[index]),
        expected=_text(expected[index]),
        rtol=rtol,
        atol=atol,
    )


def tolerances(expected: np.ndarray, rtol: float | None, atol: float | None) -> tuple[float, float]:
    """The tolerances of an output: the given ones, else by dtype and by the largest finite expected magnitude."""
    name = expected.dtype.name
    if name == "bool" or _is_integer(expected.dtype):
        return rtol or 0.0, atol or 0.0
    default = _RTOL.get(name, _F8_RTOL)
    rtol = default if rtol is None else rtol
    return rtol, default * magnitude(expected) if atol is None else atol


def magnitude(array: np.ndarray) -> float:
    """The largest finite absolute value; 0 when there is none."""
    sizes = np.abs(_wide(array))
    finite = sizes[np.isfinite(sizes)]
    return float(finite.max()) if finite.size else 0.0


def _text(value: Any) -> str:
    """A scalar with the digits its type has."""
    return f"{value:.8g}" if value.dtype.name == "float32" else str(value)


def _errors(
    actual: np.ndarray, expected: np.ndarray, rtol: float, atol: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Flat absolute error, its bound, and the expected magnitude; infinite error if only one is NaN or infinite."""
    a, e = _wide(actual).ravel(), _wide(expected).ravel()
    with np.errstate(all="ignore"):
        size = np.abs(e).astype(np.float64)
        error = np.abs(a - e).astype(np.float64)
        same = (a == e) | (np.isnan(a) & np.isnan(e))
        # a difference that is NaN (inf - inf, nan - x), and an infinity against a finite value, is the largest error
        error = np.where(same, 0.0, np.where(np.isnan(error), np.inf, error))
        bound = np.where(np.isfinite(size), atol + rtol * size, 0.0)
    return error, bound, size


def _wide(array: np.ndarray) -> np.ndarray:
    """Values in a type wide enough to subtract: Python integers stay exact up to 2**53 apart."""
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    if _is_integer(array.dtype) and array.dtype.itemsize == 8:
        return array.astype(np.longdouble)
    return array.astype(np.float64)


def _is_integer(dtype: np.dtype) -> bool:
    return dtype.kind in "iu" or dtype.name in ("int4", "uint4", "int2", "uint2", "int1", "uint1")


def _max_ulp(actual: np.ndarray, expected: np.ndarray) -> float:
    """Largest distance in representable values, over elements where both are finite; of complex, of the parts."""
    if actual.dtype.kind == "c":
        part = np.float32 if actual.dtype.itemsize == 8 else np.float64
        return _max_ulp(np.ascontiguousarray(actual).view(part), np.ascontiguousarray(expected).view(part))
    if actual.dtype.name == "bool" or _is_integer(actual.dtype):
        return float(np.max(np.abs(_wide(actual) - _wide(expected))))
    finite = np.isfinite(_wide(actual)) & np.isfinite(_wide(expected))
    if not finite.any():
        return 0.0
    distance = _ordered(actual[finite]) - _ordered(expected[finite])
    return float(np.max(np.abs(distance)))


def _ordered(array: np.ndarray) -> np.ndarray:
    """Float bits as numbers that count representable values: equal for 0.0 and -0.0, one more for the next float."""
    bits = array.view(f"i{array.dtype.itemsize}")
    low = np.iinfo(bits.dtype).min
    ordered = np.where(bits < 0, low - bits, bits)
    return ordered.astype(np.longdouble if array.dtype.itemsize == 8 else np.int64)
