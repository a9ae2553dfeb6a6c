"""Inputs for programs nobody wrote inputs for, and how far two results may be apart."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import ml_dtypes
import numpy as np

from heron.hlo.ir.module import Module
from heron.hlo.ir.types import ElementType

#: bytes of inputs, at most
MOST = 64 << 20
#: of the largest magnitude, how much an element may be off; integers are equal
_TOLERANCES = {"f64": 1e-8, "c128": 1e-8, "f32": 1e-4, "c64": 1e-4, "f16": 2e-2, "bf16": 2e-2}
_COARSE = 0.3  # of floats of eight bits or fewer


def inputs(module: Module, name: str) -> list[np.ndarray] | None:
    """Arrays for all leaves of the parameters, the same ones for the same `name`; None when there are none such."""
    leaves = [s for shape in module.parameter_shapes for _, s in shape.leaves()]
    if any(not s.is_array or any(s.dynamic) for s in leaves) or sum(s.byte_size for s in leaves) > MOST:
        return None
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
    draw = np.random.default_rng(seed)
    return [_array(draw, s.element_type, s.dims) for s in leaves]


def _array(draw: np.random.Generator, t: ElementType, dims: tuple[int, ...]) -> np.ndarray:
    if t.kind == "pred":
        return draw.integers(0, 2, dims) != 0
    if t.is_complex:
        return (draw.standard_normal(dims) + 1j * draw.standard_normal(dims)).astype(t.dtype)
    if t.is_float:
        return np.asarray(draw.standard_normal(dims)).astype(t.dtype)
    low, high = (-4, 8) if t.is_signed else (0, 8)
    if t.bits < 4:
        info = ml_dtypes.iinfo(t.dtype)
        low, high = int(info.min), int(info.max) + 1
    return np.asarray(draw.integers(low, high, dims)).astype(t.dtype)


def difference(found: Sequence[np.ndarray], wanted: Sequence[np.ndarray]) -> str | None:
    """What is different, or None."""
    if len(found) != len(wanted):
        return f"{len(found)} outputs instead of {len(wanted)}"
    for n, (ours, theirs) in enumerate(zip(found, wanted, strict=True)):
        if ours.dtype != theirs.dtype or ours.shape != theirs.shape:
            return f"output {n} is {ours.dtype}{list(ours.shape)} instead of {theirs.dtype}{list(theirs.shape)}"
        wrong = _array_difference(np.asarray(ours), np.asarray(theirs))
        if wrong:
            return f"output {n}: {wrong}"
    return None


def _array_difference(ours: np.ndarray, theirs: np.ndarray) -> str | None:
    if ours.dtype.kind in "biu" or not _is_float(ours.dtype):
        bad = ours != theirs
        return _at(bad, ours, theirs) if bad.any() else None
    if ours.dtype.kind == "c":
        half = np.dtype(f"f{ours.itemsize // 2}")
        return _array_difference(np.ascontiguousarray(ours).view(half), np.ascontiguousarray(theirs).view(half))
    a, b = ours.astype(np.float64), theirs.astype(np.float64)
    finite = np.isfinite(b)
    with np.errstate(invalid="ignore"):
        bad = ~finite & ~((a == b) | (np.isnan(a) & np.isnan(b))) | finite & ~np.isfinite(a)
        name = {"float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16"}.get(ours.dtype.name, "")
        most = np.abs(b[finite]).max(initial=0.0) * _TOLERANCES.get(name, _COARSE)
        bad |= finite & (np.abs(a - b) > most)
    return _at(bad, a, b) if bad.any() else None


def _is_float(dtype: np.dtype) -> bool:
    return dtype.kind in "fc" or dtype.name.startswith(("bfloat", "float"))


def _at(bad: np.ndarray, ours: np.ndarray, theirs: np.ndarray) -> str:
    place = int(np.argmax(bad.reshape(-1)))
    pair = f"{ours.reshape(-1)[place]} instead of {theirs.reshape(-1)[place]}"
    return f"{int(bad.sum())} of {bad.size} differ, element {place} is {pair}"


def plain(array: np.ndarray) -> np.ndarray:
    """The array in a type every NumPy file can hold: small floats as their bits."""
    return array if array.dtype.isbuiltin == 1 else array.view(f"u{array.itemsize}")


def array_of(saved: np.ndarray, like: np.ndarray) -> np.ndarray:
    """Back from `plain`, given an array of the type it had."""
    return saved if like.dtype.isbuiltin == 1 else saved.view(like.dtype)
