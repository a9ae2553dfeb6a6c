"""Gathers, scatters, slices at computed places and their updates: rows and scalars, places outside, repeated places."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator

import numpy as np

from heron.hlo.ir import types
from tests.sizes.case import EDGES, Case, program, reducer, shape, together, varied, whole

_TYPES = ("f32", "bf16", "s8", "s32", "f64", "c64")


def cases() -> Iterator[Case]:
    for size in EDGES:
        for many in (0, 1, 2, 33, 129):
            if size or not many:
                yield _rows(size, many, 5, "s32")
                yield _scatter(size, many, 5, "f32", "add")
        if size:
            yield _rows(9, 7, size, "s64")
            yield _scatter(9, 7, size, "s32", "add")
            yield _update((size, 3), (1, 3))
            yield _update((3, size), (3, 1))
            yield _slice((size,), (size // 2 + 1,) if size > 1 else (1,))
    draw = random.Random(0)
    for t in _TYPES:
        for _ in range(12):
            rows, many, wide = draw.choice(EDGES[1:20]), draw.choice(EDGES[1:18]), draw.choice(EDGES[1:14])
            yield _scatter(rows, many, wide, t, draw.choice(("add", "last", "maximum" if t[0] != "c" else "add")))
            dims = tuple(draw.choice(EDGES[1:12]) for _ in range(draw.randint(1, 4)))
            part = tuple(draw.randint(0 if draw.random() < 0.1 else 1, d) for d in dims)
            yield _update(dims, part, t)
            yield _slice(dims, part, t)


def _places(many: int, rows: int, t: str = "s32") -> Callable[[np.random.Generator], np.ndarray]:
    """Rows, some of them outside."""
    return lambda rng: rng.integers(-2, rows + 2, size=(many, 1)).astype(types.by_name(t).dtype)


def _inside(many: int, rows: int) -> Callable[[np.random.Generator], np.ndarray]:
    """Different rows: what a scatter that keeps the last update needs for one meaning."""
    return lambda rng: rng.permutation(max(rows, many))[:many].reshape(many, 1).astype(np.int32)


def _rows(rows: int, many: int, wide: int, index: str) -> Case:
    op = f"gather(p0, p1), offset_dims={{1}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, slice_sizes={{{1 if rows else 0},{wide}}}"
    text = program([shape("f32", (rows, wide)), shape(index, (many, 1))], shape("f32", (many, wide)), op)
    return Case("gather", f"{rows}x{wide}, {many} rows, {index}", text, together(varied("f32", (rows, wide)), _places(many, rows, index)), work=many * wide)  # fmt: skip


def _scatter(rows: int, many: int, wide: int, t: str, how: str) -> Case:
    op = "scatter(p0, p1, p2), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f"
    before = reducer(how, t) if how != "last" else f"f {{\na = {t}[] parameter(0)\nROOT b = {t}[] parameter(1)\n}}"
    operand, updates = (rows, wide), (many, wide)
    places = _inside(many, rows) if how == "last" else _places(many, rows)
    text = program([shape(t, operand), shape("s32", (many, 1)), shape(t, updates)], shape(t, operand), op, before)
    inputs = together(whole(t, operand, -1, 1), places, whole(t, updates, -1, 1))
    return Case("scatter", f"{t} {how} {rows}x{wide}, {many} rows", text, inputs, work=(many + rows) * wide * 4)


def _starts(dims: tuple[int, ...]) -> list[Callable[[np.random.Generator], np.ndarray]]:
    return [lambda rng, d=d: np.asarray(rng.integers(-2, d + 2), np.int32) for d in dims]


def _update(dims: tuple[int, ...], part: tuple[int, ...], t: str = "f32") -> Case:
    names = ", ".join(f"p{n + 2}" for n in range(len(dims)))
    shapes = [shape(t, dims), shape(t, part), *["s32[]"] * len(dims)]
    text = program(shapes, shapes[0], f"dynamic-update-slice(p0, p1, {names})")
    inputs = together(varied(t, dims), varied(t, part), *_starts(dims))
    return Case("dynamic-update-slice", f"{t} {dims} {part}", text, inputs, work=math.prod(dims))


def _slice(dims: tuple[int, ...], part: tuple[int, ...], t: str = "f32") -> Case:
    names = ", ".join(f"p{n + 1}" for n in range(len(dims)))
    sizes = ",".join(map(str, part))
    text = program(
        [shape(t, dims), *["s32[]"] * len(dims)],
        shape(t, part),
        f"dynamic-slice(p0, {names}), dynamic_slice_sizes={{{sizes}}}",
    )
    return Case(
        "dynamic-slice", f"{t} {dims} {part}", text, together(varied(t, dims), *_starts(dims)), work=math.prod(part)
    )
