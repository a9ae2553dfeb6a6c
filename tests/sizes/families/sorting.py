"""Sorts by one to three keys along any dimension, and the largest k of rows."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from tests.sizes.case import EDGES, LONG, Case, program, shape, together, varied, whole

_TYPES = ("f32", "f64", "bf16", "f16", "s8", "u8", "s16", "s32", "u32", "s64", "u64", "pred")


def cases() -> Iterator[Case]:
    for size in LONG[:-2]:
        for t in ("f32", "s32", "u8"):
            yield _sort((t,), (size,), 0, "LT", True)
        yield _sort(("f32", "s32"), (3, size), 1, "GT", True)
        yield _sort(("s64", "f64"), (size, 2), 0, "LT", True)
    draw = random.Random(0)
    for t in _TYPES:
        for size in EDGES:
            yield _sort(
                (t, "s32"), (size, 3) if size % 2 else (3, size), int(not size % 2), draw.choice(("LT", "GT")), True
            )
    for _ in range(60):
        rank = draw.randint(1, 4)
        dims = tuple(draw.choice(EDGES[: {1: 24, 2: 17, 3: 10, 4: 6}[rank]]) for _ in range(rank))
        operands = tuple(draw.choice(_TYPES) for _ in range(draw.randint(1, 4)))
        yield _sort(
            operands, dims, draw.randrange(rank), draw.choice(("LT", "GT")), True, draw.sample(range(rank), rank)
        )
    for size in (1, 2, 3, 17, 33, 129, 1021, 4097, 16411):
        for k in sorted({1, min(2, size), min(8, size), min(65, size), size // 2 or 1, size}):
            yield _top(size, k, "f32")
            yield _top(size, k, "s32")


def _sort(
    operands: tuple[str, ...],
    dims: tuple[int, ...],
    along: int,
    direction: str,
    stable: bool,
    order: list[int] | None = None,
) -> Case:
    scalars = [f"{t}[]" for t in operands]
    lines = [f"a{n} = {s} parameter({2 * n})\nb{n} = {s} parameter({2 * n + 1})" for n, s in enumerate(scalars)]
    kind = ", type=TOTALORDER" if operands[0][0] in "fb" else ""
    before = "f {\n" + "\n".join(lines) + f"\nROOT r = pred[] compare(a0, b0), direction={direction}{kind}\n}}"
    shapes = [shape(t, dims, order) for t in operands]
    result = shapes[0] if len(shapes) == 1 else f"({', '.join(shapes)})"
    names = ", ".join(f"p{n}" for n in range(len(operands)))
    op = f"sort({names}), dimensions={{{along}}}, is_stable={str(stable).lower()}, to_apply=f"
    # keys that repeat show whether the sort is stable
    first = whole(operands[0], dims, -3, 3) if len(operands) > 1 else varied(operands[0], dims)
    inputs = together(first, *(varied(t, dims) for t in operands[1:]))
    label = f"{operands} {dims} along {along} {direction} order {order}"
    return Case("sort", label, program(shapes, result, op, before), inputs, work=math.prod(dims) * 12)


def _top(size: int, k: int, t: str) -> Case:
    rows = 3
    shapes = f"({shape(t, (rows, k))}, {shape('s32', (rows, k))})"
    text = program([shape(t, (rows, size))], shapes, f"topk(p0), k={k}, largest=true")
    return Case("topk", f"{t} {size} k={k}", text, together(varied(t, (rows, size))), work=rows * size * 12)
