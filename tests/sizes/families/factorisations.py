"""Cholesky factors and triangular solves: every form, small and around blocks, in batches."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from heron.hlo.ir import types
from tests.sizes.case import Case, program, shape, together, varied

_SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 65, 127, 129)


def cases() -> Iterator[Case]:
    for size in _SIZES:
        for t, batch, lower in (("f32", (), True), ("f64", (3,), False), ("c64", (2,), True), ("f32", (0,), False)):
            yield _cholesky(t, (*batch, size, size), lower)
    forms = list(
        itertools.product((True, False), (True, False), (True, False), ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"))
    )
    for n, (left, lower, unit, how) in enumerate(forms):
        for m, size in enumerate(_SIZES):
            t = ("f32", "f64", "c64", "c128")[(n + m) % 4]
            batch = ((), (3,), (2, 2))[(n + m) % 3]
            yield _solve(t, batch, size, (1, 2, 5, 17)[m % 4], left, lower, unit, how)


def _definite(t: str, dims: tuple[int, ...]) -> Callable[[np.random.Generator], np.ndarray]:
    def draw(rng: np.random.Generator) -> np.ndarray:
        a = rng.standard_normal(dims) + (1j * rng.standard_normal(dims) if t.startswith("c") else 0)
        return (a @ np.swapaxes(a.conj(), -1, -2) / max(dims[-1], 1) + 2 * np.eye(dims[-1])).astype(
            types.by_name(t).dtype
        )

    return draw


def _dominant(t: str, dims: tuple[int, ...]) -> Callable[[np.random.Generator], np.ndarray]:
    def draw(rng: np.random.Generator) -> np.ndarray:
        a = rng.uniform(-1, 1, dims) / max(dims[-1], 1) + (0.1j * np.eye(dims[-1]) if t.startswith("c") else 0)
        return (a + 2 * np.eye(dims[-1])).astype(types.by_name(t).dtype)

    return draw


def _cholesky(t: str, dims: tuple[int, ...], lower: bool) -> Case:
    # the other triangle of the result has no meaning: it is cleared
    half = "GE" if lower else "LE"
    last = len(dims) - 1
    lines = [
        "HloModule m", "ENTRY e {", f"p0 = {shape(t, dims)} parameter(0)",
        f"c = {shape(t, dims)} cholesky(p0), lower={str(lower).lower()}",
        f"i = {shape('s32', dims)} iota(), iota_dimension={last - 1}", f"j = {shape('s32', dims)} iota(), iota_dimension={last}",
        f"in = {shape('pred', dims)} compare(i, j), direction={half}", f"z = {t}[] constant({'(0, 0)' if t[0] == 'c' else 0})",
        f"zs = {shape(t, dims)} broadcast(z), dimensions={{}}", f"ROOT r = {shape(t, dims)} select(in, c, zs)", "}", "",
    ]  # fmt: skip
    return Case(
        "cholesky",
        f"{t} {dims} lower={lower}",
        "\n".join(lines),
        together(_definite(t, dims)),
        error=64,
        work=dims[-1] ** 3,
    )


def _solve(t: str, batch: tuple[int, ...], size: int, many: int, left: bool, lower: bool, unit: bool, how: str) -> Case:
    a, b = (*batch, size, size), (*batch, size, many) if left else (*batch, many, size)
    flags = {"left_side": left, "lower": lower, "unit_diagonal": unit}
    words = ", ".join(f"{name}={str(value).lower()}" for name, value in flags.items())
    text = program([shape(t, a), shape(t, b)], shape(t, b), f"triangular-solve(p0, p1), {words}, transpose_a={how}")
    inputs = together(_dominant(t, a), varied(t, b))
    return Case("triangular-solve", f"{t} {a} {b} {words} {how}", text, inputs, error=64, work=size * size * many)
