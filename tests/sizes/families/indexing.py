"""Gathers, scatters, slices at computed places and their updates: rows and scalars, places outside, repeated places."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator

import numpy as np

from heron.hlo.ir import types
from tests.sizes.case import EDGES, Case, program, reducer, shape, together, varied, whole

#: types of indices, and a dimension that they do not count to
_NARROW = {"s8": 131, "u8": 261, "s16": 32771, "u16": 65539}
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
    yield from _narrow()


def _narrow() -> Iterator[Case]:
    """Dimensions longer than the type of the indices counts: indexed, batching, of windows, and together."""
    for t, size in _NARROW.items():
        for rows, many, wide in ((size, 9, 1), (9, size, 1), (2, 9, size), (size, size, 1)):
            yield _rows(rows, many, wide, t)
            yield _scatter(rows, many, wide, "s32", "add", t)
        for rows, wide in ((size, 3), (2, size), (size, 1)):
            yield _each_row(rows, wide, t)
            yield _scatter_each_row(rows, wide, t)
        for dims, part in (((size, 3), (2, 2)), ((3, size), (1, size - 1)), ((size,), (size,))):
            yield _slice(dims, part, index=t)
            yield _update(dims, part, index=t)


def _any(dims: tuple[int, ...], size: int, t: str) -> Callable[[np.random.Generator], np.ndarray]:
    """Places along a dimension, and outside of it as far as the type of the indices has such numbers."""
    limits = np.iinfo(types.by_name(t).dtype)
    first, last = max(limits.min, -2), min(limits.max, size + 1)
    return lambda rng: rng.integers(first, last, size=dims, endpoint=True).astype(limits.dtype)


def _each_row(rows: int, wide: int, index: str) -> Case:
    """A place of each row, as `vmap` of an index gives it."""
    op = (
        "gather(p0, p1), offset_dims={1}, collapsed_slice_dims={}, start_index_map={1}, operand_batching_dims={0}, "
        "start_indices_batching_dims={0}, index_vector_dim=1, slice_sizes={1,1}"
    )
    text = program([shape("f32", (rows, wide)), shape(index, (rows, 1))], shape("f32", (rows, 1)), op)
    inputs = together(varied("f32", (rows, wide)), _any((rows, 1), wide, index))
    return Case("gather", f"of each of {rows}x{wide}, {index}", text, inputs, work=rows)


def _scatter_each_row(rows: int, wide: int, index: str) -> Case:
    op = (
        "scatter(p0, p1, p2), update_window_dims={}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, "
        "input_batching_dims={0}, scatter_indices_batching_dims={0}, index_vector_dim=1, to_apply=f"
    )
    operand = shape("s32", (rows, wide))
    text = program([operand, shape(index, (rows, 1)), shape("s32", (rows,))], operand, op, reducer("add", "s32"))
    inputs = together(varied("s32", (rows, wide)), _any((rows, 1), wide, index), varied("s32", (rows,)))
    return Case("scatter", f"to each of {rows}x{wide}, {index}", text, inputs, work=rows * wide)


def _inside(many: int, rows: int) -> Callable[[np.random.Generator], np.ndarray]:
    """Different rows: what a scatter that keeps the last update needs for one meaning."""
    return lambda rng: rng.permutation(max(rows, many))[:many].reshape(many, 1).astype(np.int32)


def _rows(rows: int, many: int, wide: int, index: str) -> Case:
    op = f"gather(p0, p1), offset_dims={{1}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, slice_sizes={{{1 if rows else 0},{wide}}}"
    text = program([shape("f32", (rows, wide)), shape(index, (many, 1))], shape("f32", (many, wide)), op)
    return Case("gather", f"{rows}x{wide}, {many} rows, {index}", text, together(varied("f32", (rows, wide)), _any((many, 1), rows, index)), work=many * wide)  # fmt: skip


def _scatter(rows: int, many: int, wide: int, t: str, how: str, index: str = "s32") -> Case:
    op = "scatter(p0, p1, p2), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f"
    before = reducer(how, t) if how != "last" else f"f {{\na = {t}[] parameter(0)\nROOT b = {t}[] parameter(1)\n}}"
    operand, updates = (rows, wide), (many, wide)
    places = _inside(many, rows) if how == "last" else _any((many, 1), rows, index)
    text = program([shape(t, operand), shape(index, (many, 1)), shape(t, updates)], shape(t, operand), op, before)
    inputs = together(whole(t, operand, -1, 1), places, whole(t, updates, -1, 1))
    return Case(
        "scatter", f"{t} {how} {rows}x{wide}, {many} rows, {index}", text, inputs, work=(many + rows) * wide * 4
    )


def _starts(dims: tuple[int, ...], index: str) -> list[Callable[[np.random.Generator], np.ndarray]]:
    return [_any((), d, index) for d in dims]


def _update(dims: tuple[int, ...], part: tuple[int, ...], t: str = "f32", index: str = "s32") -> Case:
    names = ", ".join(f"p{n + 2}" for n in range(len(dims)))
    shapes = [shape(t, dims), shape(t, part), *[f"{index}[]"] * len(dims)]
    text = program(shapes, shapes[0], f"dynamic-update-slice(p0, p1, {names})")
    inputs = together(varied(t, dims), varied(t, part), *_starts(dims, index))
    return Case("dynamic-update-slice", f"{t} {dims} {part}, {index}", text, inputs, work=math.prod(dims))


def _slice(dims: tuple[int, ...], part: tuple[int, ...], t: str = "f32", index: str = "s32") -> Case:
    names = ", ".join(f"p{n + 1}" for n in range(len(dims)))
    sizes = ",".join(map(str, part))
    text = program(
        [shape(t, dims), *[f"{index}[]"] * len(dims)],
        shape(t, part),
        f"dynamic-slice(p0, {names}), dynamic_slice_sizes={{{sizes}}}",
    )
    return Case(
        "dynamic-slice",
        f"{t} {dims} {part}, {index}",
        text,
        together(varied(t, dims), *_starts(dims, index)),
        work=math.prod(part),
    )
