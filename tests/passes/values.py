"""Inputs that break careless algebra: NaN, infinities, both zeros, subnormals, extremes of integers."""

from __future__ import annotations

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np

from heron.evaluator import Evaluator
from heron.hlo.ir.module import Module
from heron.hlo.ir.types import ElementType
from heron.passes.framework.checks import random_array

_FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, 1e-40, -1e-45, 1e38, -3e38, np.inf, -np.inf, np.nan]
_SUMS = ("reduce", "dot", "reduce-window", "convolution", "scatter")
_FINITE = [1.0, -1.0, 0.5, -2.0, 3.0, 7.25]


def special_values(t: ElementType, math: str, any_order: bool = False) -> np.ndarray:
    """Values to try for a type; none whose sum overflows or not by the order they are added in, with `any_order`."""
    if t.kind == "pred":
        return np.array([False, True])
    if t.is_integer:
        low, high = (-(1 << t.bits - 1), (1 << t.bits - 1) - 1) if t.is_signed else (0, (1 << t.bits) - 1)
        wide = np.uint64 if t.is_unsigned else np.int64  # with both signs, numbers of 64 bits would become floats
        return np.array([low, low + 1, 0, 1, 2, 3, 5, high - 1, high], wide).astype(t.dtype)
    values = np.array(_FLOATS if math == "exact" else _FINITE)
    if any_order:
        values = values[(np.abs(values) < 100) | ~np.isfinite(values)]
    if t.is_complex:
        values = np.array([complex(a, b) for a, b in product(values[:8], values[:8])])
    with np.errstate(all="ignore"):
        return values.astype(t.dtype)


def check_on_special_values(before: Module, after: Module, math: str, few: bool = False) -> None:
    """Compare two modules on special and random inputs: bit for bit (NaNs alike) for exact rules, else roughly.

    With `few` not every combination of special values is tried but some drawn at random.
    """
    rng = np.random.default_rng(7)
    shapes = [p.shape for p in before.entry.parameters]
    any_order = _adds_up(before)
    pools = [special_values(s.element_type, math, any_order) for s in shapes]
    if all(s.rank == 0 for s in shapes) and len(shapes) <= 2 and not few:
        trials = [list(map(np.asarray, combination)) for combination in product(*pools)]
    else:
        trials = [
            [rng.choice(pool, s.dims) for pool, s in zip(pools, shapes, strict=True)] for _ in range(30 if few else 10)
        ]
    trials += [[random_array(s.element_type, s.dims, rng) for s in shapes] for _ in range(5)]
    for inputs in trials:
        old, new = Evaluator(before).run(*inputs), Evaluator(after).run(*inputs)
        for before_part, after_part in zip(_parts(old), _parts(new), strict=True):
            _assert_equal(before_part, after_part, math, inputs, any_order)


def root_type(module: Module) -> ElementType:
    """The element type of the result, of its first part if it is a tuple."""
    return next(iter(module.entry.root.shape.leaves()))[1].element_type


def _parts(value: Any) -> list[np.ndarray]:
    if not isinstance(value, tuple):
        return [np.asarray(value)]
    return [part for inner in value for part in _parts(inner)]


def _adds_up(module: Module) -> bool:
    return any(i.opcode in _SUMS for i in module.entry.instructions)


def _assert_equal(old: np.ndarray, new: np.ndarray, math: str, inputs: list[np.ndarray], any_order: bool) -> None:
    assert old.dtype == new.dtype and old.shape == new.shape
    if old.dtype.kind not in "fcV" or "int" in old.dtype.name:
        assert (old == new).all(), f"{inputs}: {old} became {new}"
        return
    wide = np.complex128 if old.dtype.kind == "c" else np.float64
    a, b = old.astype(wide), new.astype(wide)
    with np.errstate(all="ignore"):
        if math == "exact" and not any_order:
            fine = (a == b) & (np.signbit(a.real) == np.signbit(b.real)) | np.isnan(a) & np.isnan(b)
        else:
            # a few roundings of the type itself
            rounding = 8 * float(ml_dtypes.finfo(old.dtype).eps)
            fine = np.isclose(a, b, rtol=max(1e-5, rounding), atol=max(1e-6, rounding), equal_nan=True)
    assert np.all(fine), f"{inputs}: {old} became {new}"
