"""Reductions in windows, cumulative sums, and select-and-scatter (the gradient of pooling)."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from tests.sizes.case import LONG, Case, least, reducer, shape, together, varied, whole


def cases() -> Iterator[Case]:
    yield from (case for case in _all() if case is not None)


def _all() -> Iterator[Case | None]:
    for size in LONG:
        if size:
            yield _window("f32", "add", (size,), (size,), (1,), ((size - 1, 0),), (1,), (1,))
            yield _window("s32", "add", (3, size), (1, size), (1, 1), ((0, 0), (0, size - 1)), (1, 1), (1, 1))
            yield _window("f32", "maximum", (size, 3), (size, 1), (1, 1), ((size - 1, 0), (0, 0)), (1, 1), (1, 1))
    for t in ("f32", "bf16", "s32", "f64", "s8"):
        draw = random.Random(t)
        for _ in range(40):
            yield _drawn(t, draw)
    draw = random.Random(1)
    for _ in range(60):
        yield _scattered(draw)


def _results(dims, window, strides, pads, base, dilation) -> tuple[int, ...] | None:  # noqa: ANN001
    found = []
    for n, w, s, (a, b), o, i in zip(dims, window, strides, pads, base, dilation, strict=True):
        padded, wide = ((n - 1) * o + 1 if n else 0) + a + b, (w - 1) * i + 1
        if padded < wide:
            return None
        found.append((padded - wide) // s + 1)
    return tuple(found)


def _text(window, strides, pads, base, dilation) -> str:  # noqa: ANN001
    def each(values) -> str:  # noqa: ANN001
        return "x".join(map(str, values))

    return (
        f"window={{size={each(window)} stride={each(strides)} pad={'x'.join(f'{a}_{b}' for a, b in pads)} "
        f"lhs_dilate={each(base)} rhs_dilate={each(dilation)}}}"
    )


def _window(t, opcode, dims, window, strides, pads, base, dilation) -> Case | None:  # noqa: ANN001
    result = _results(dims, window, strides, pads, base, dilation)
    if result is None:
        return None
    init = "0" if opcode == "add" else least(t)
    lines = [
        "HloModule m", reducer(opcode, t), "ENTRY e {", f"p0 = {shape(t, dims)} parameter(0)", f"z = {t}[] constant({init})",
        f"ROOT r = {shape(t, result)} reduce-window(p0, z), {_text(window, strides, pads, base, dilation)}, to_apply=f",
        "}", "",
    ]  # fmt: skip
    draw = whole(t, dims, -1, 1) if opcode == "add" else varied(t, dims)
    label = f"{t} {opcode} {dims} {_text(window, strides, pads, base, dilation)}"
    cumulative = len([w for w in window if w > 1]) == 1 and max(window) == max(dims)
    work = math.prod(result) * (40 if cumulative else math.prod(window))
    return Case("reduce-window", label, "\n".join(lines), together(draw), work=work)


def _drawn(t: str, draw: random.Random) -> Case | None:
    rank = draw.randint(1, 4)
    dims = tuple(draw.choice((0, 1, 2, 3, 7, 16, 17, 33) if rank < 3 else (1, 2, 3, 7)) for _ in range(rank))
    window = tuple(draw.choice((1, 1, 2, 3, 5)) for _ in range(rank))
    strides = tuple(draw.choice((1, 1, 2, 3)) for _ in range(rank))
    pads = tuple((draw.randint(0, w), draw.randint(0, w)) for w in window)
    base = tuple(draw.choice((1, 1, 1, 2)) for _ in range(rank))
    dilation = tuple(draw.choice((1, 1, 1, 2)) for _ in range(rank))
    return _window(t, draw.choice(("add", "maximum")), dims, window, strides, pads, base, dilation)


def _scattered(draw: random.Random) -> Case | None:
    rank = draw.randint(1, 3)
    dims = tuple(draw.choice((1, 2, 3, 7, 8, 17, 33) if rank < 3 else (2, 3, 7)) for _ in range(rank))
    window = tuple(draw.choice((1, 2, 2, 3)) for _ in range(rank))
    strides = tuple(draw.choice((1, 2, 2, 3)) for _ in range(rank))
    pads = tuple((draw.randint(0, w - 1), draw.randint(0, w - 1)) for w in window)
    ones = (1,) * rank
    source = _results(dims, window, strides, pads, ones, ones)
    if source is None:
        return None
    t = draw.choice(("f32", "f64", "s32", "bf16"))
    ge = f"ge {{\na = {t}[] parameter(0)\nb = {t}[] parameter(1)\nROOT r = pred[] compare(a, b), direction=GE\n}}"
    placed = "x".join(f"{a}_{b}" for a, b in pads)
    sizes, steps = "x".join(map(str, window)), "x".join(map(str, strides))
    lines = [
        "HloModule m", reducer("add", t), ge, "ENTRY e {", f"p0 = {shape(t, dims)} parameter(0)",
        f"p1 = {shape(t, source)} parameter(1)", f"z = {t}[] constant(0)",
        f"ROOT r = {shape(t, dims)} select-and-scatter(p0, p1, z), window={{size={sizes} stride={steps} pad={placed}}}, "
        "select=ge, scatter=f", "}", "",
    ]  # fmt: skip
    inputs = together(varied(t, dims), whole(t, source, -1, 1))
    return Case(
        "select-and-scatter", f"{t} {dims} {sizes} {steps} {placed}", "\n".join(lines), inputs, work=math.prod(dims) * 9
    )
