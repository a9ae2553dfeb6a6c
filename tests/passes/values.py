"""Inputs that break careless algebra: NaN, infinities, both zeros, subnormals, extremes of integers."""

from __future__ import annotations

from itertools import product

import numpy as np

from heron.hlo.evaluator import Evaluator
from heron.hlo.module import Module
from heron.hlo.types import ElementType
from heron.passes.checks import random_array

_FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, 1e-40, -1e-45, 1e38, -3e38, np.inf, -np.inf, np.nan]
_FINITE = [1.0, -1.0, 0.5, -2.0, 3.0, 7.25]


def special_values(t: ElementType, math: str) -> np.ndarray:
    if t.kind == "pred":
        return np.array([False, True])
    if t.is_integer:
        low, high = (-(1 << t.bits - 1), (1 << t.bits - 1) - 1) if t.is_signed else (0, (1 << t.bits) - 1)
        return np.array([low, low + 1, 0, 1, 2, 3, 5, high - 1, high]).astype(t.dtype)
    values = np.array(_FLOATS if math == "exact" else _FINITE)
    if t.is_complex:
        return np.array([complex(a, b) for a, b in product(values[:8], values[:8])]).astype(t.dtype)
    with np.errstate(all="ignore"):
        return values.astype(t.dtype)


def check_on_special_values(before: Module, after: Module, math: str) -> None:
    """Compare two modules on special and random inputs: bit for bit (NaNs alike) for exact rules, else roughly."""
    rng = np.random.default_rng(7)
    shapes = [p.shape for p in before.entry.parameters]
    pools = [special_values(s.element_type, math) for s in shapes]
    if all(s.rank == 0 for s in shapes) and len(shapes) <= 2:
        trials = [list(map(np.asarray, combination)) for combination in product(*pools)]
    else:
        trials = [[rng.choice(pool, s.dims) for pool, s in zip(pools, shapes, strict=True)] for _ in range(10)]
    trials += [[random_array(s.element_type, s.dims, rng) for s in shapes] for _ in range(5)]
    for inputs in trials:
        old, new = Evaluator(before).run(*inputs), Evaluator(after).run(*inputs)
        _assert_equal(np.asarray(old), np.asarray(new), math, inputs, any_order=_adds_up(before))


def _adds_up(module: Module) -> bool:
    return any(i.opcode in ("reduce", "dot") for i in module.entry.instructions)


def _assert_equal(old: np.ndarray, new: np.ndarray, math: str, inputs: list[np.ndarray], any_order: bool) -> None:
    assert old.dtype == new.dtype and old.shape == new.shape
    if old.dtype.kind not in "fcV":
        assert (old == new).all(), f"{inputs}: {old} became {new}"
        return
    wide = np.complex128 if old.dtype.kind == "c" else np.float64
    a, b = old.astype(wide), new.astype(wide)
    with np.errstate(all="ignore"):
        if math == "exact" and not any_order:
            fine = (a == b) & (np.signbit(a.real) == np.signbit(b.real)) | np.isnan(a) & np.isnan(b)
        else:
            fine = np.isclose(a, b, rtol=1e-5, atol=1e-6, equal_nan=True)
    assert np.all(fine), f"{inputs}: {old} became {new}"
