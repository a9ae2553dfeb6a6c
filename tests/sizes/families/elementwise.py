"""Loops over elements: the last elements of vectors, types of every width, conversions, long functions."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.sizes.case import EDGES, LONG, Case, program, shape, together, varied

_TYPES = ("f32", "f64", "bf16", "f16", "s8", "u8", "s16", "s32", "u32", "s64", "u64", "s4", "u4", "pred", "c64", "c128", "f8e4m3fn", "f8e5m2")  # fmt: skip
_FUNCTIONS = ("exponential", "tanh", "logistic", "sine", "erf", "log-plus-one", "rsqrt", "cbrt")


def cases() -> Iterator[Case]:
    for size in LONG:
        yield _function("exponential", "f32", size)
        yield _sum("s32", (size,))
    for t in _TYPES:
        for size in EDGES:
            yield _sum(t, (size,))
            yield _chosen(t, (3, size))
    for name in _FUNCTIONS:
        for t in ("f32", "f64", "bf16"):
            for size in EDGES[:14]:
                yield _function(name, t, size)
    draw = random.Random(0)
    for _ in range(200):
        a, b = draw.sample([t for t in _TYPES if t[0] != "c"], 2)
        yield _converted(a, b, draw.choice(EDGES))


def _sum(t: str, dims: tuple[int, ...]) -> Case:
    op = "xor" if t == "pred" else "add"
    text = program([shape(t, dims)] * 2, shape(t, dims), f"{op}(p0, p1)")
    return Case("add", f"{t} {dims}", text, together(varied(t, dims), varied(t, dims)), work=dims[0])


def _chosen(t: str, dims: tuple[int, ...]) -> Case:
    text = program([shape("pred", dims), shape(t, dims), shape(t, dims)], shape(t, dims), "select(p0, p1, p2)")
    inputs = together(varied("pred", dims), varied(t, dims), varied(t, dims))
    return Case("select", f"{t} {dims}", text, inputs, work=dims[0] * dims[1])


def _function(name: str, t: str, size: int) -> Case:
    text = program([shape(t, (size,))], shape(t, (size,)), f"{name}(p0)")
    return Case(name, f"{t} {size}", text, together(varied(t, (size,))), error=4, work=size * 4)


def _converted(a: str, b: str, size: int) -> Case:
    text = program([shape(a, (size,))], shape(b, (size,)), "convert(p0)")
    return Case("convert", f"{a} {b} {size}", text, together(varied(a, (size,))), work=size)
