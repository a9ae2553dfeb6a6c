"""Reductions: any dimensions of any rank and order in memory; pairs; rows of a softmax."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from tests.sizes.case import EDGES, LONG, Case, least, reducer, shape, together, varied, whole

_TYPES = ("f32", "f64", "bf16", "f16", "s8", "u8", "s32", "s64", "c64", "pred")
_NEUTRAL = {"add": "0", "multiply": "1", "and": "true", "or": "false"}


def cases() -> Iterator[Case]:
    for size in LONG:
        for t in ("f32", "s32"):
            yield _reduce(t, "add", (size,), (0,))
            yield _reduce(t, "maximum", (3, size), (1,))
            yield _reduce(t, "add", (size, 3), (0,))
    for size in EDGES:
        for t in _TYPES:
            yield _reduce(t, "or" if t == "pred" else "add", (size, 65), (1,))
            yield _reduce(t, "and" if t == "pred" else "maximum", (65, size), (0,))
    draw = random.Random(0)
    for _ in range(240):
        yield _drawn(draw)
    for size in (1, 2, 3, 17, 33, 129, 1021, 4097):
        for along in (0, 1):
            yield _largest("f32", (size, 9) if along else (9, size), along)
            yield _largest("s32", (9, size) if along else (size, 9), along)
    for size in EDGES[1:]:
        yield _softmax(7, size)
        yield _softmax(size, 33)


def _init(opcode: str, t: str) -> str:
    if opcode == "maximum":
        return least(t)
    return "(0, 0)" if t.startswith("c") and opcode == "add" else "(1, 0)" if t.startswith("c") else _NEUTRAL[opcode]


def _reduce(t: str, opcode: str, dims: tuple[int, ...], over: tuple[int, ...], order: list[int] | None = None) -> Case:
    if opcode == "maximum" and t.startswith("c"):
        opcode = "add"
    kept = tuple(d for n, d in enumerate(dims) if n not in over)
    result = shape(t, kept)
    lines = [
        "HloModule m", reducer(opcode, t), "ENTRY e {", f"p0 = {shape(t, dims, order)} parameter(0)",
        f"z = {t}[] constant({_init(opcode, t)})",
        f"ROOT r = {result} reduce(p0, z), dimensions={{{','.join(map(str, over))}}}, to_apply=f", "}", "",
    ]  # fmt: skip
    # whole numbers of bf16 end at 256: sums of that type are of zeros and ones, few of them
    many = math.prod(dims[d] for d in over)
    draw = (
        varied(t, dims) if opcode == "maximum" else _sparse(t, dims, many) if opcode == "add" else whole(t, dims, 1, 1)
    )
    label = f"{t} {opcode} {dims} over {over} order {order}"
    return Case("reduce", label, "\n".join(lines), together(draw), work=math.prod(dims))


def _sparse(t: str, dims: tuple[int, ...], terms: int):  # noqa: ANN202
    """Ones and minus ones, of which at most some hundred meet in a sum where the type is short."""
    plain = whole(t, dims, -1, 1)
    if t not in ("bf16", "f16", "s8", "u8") or terms < 500:
        return plain
    return lambda rng: (plain(rng) * (rng.random(dims) < 100 / terms)).astype(plain(rng).dtype)


def _drawn(draw: random.Random) -> Case:
    rank = draw.randint(1, 5)
    sizes = {1: EDGES, 2: EDGES[:20], 3: EDGES[:15], 4: EDGES[:11], 5: EDGES[1:7]}[rank]
    dims = tuple(draw.choice(sizes) for _ in range(rank))
    over = tuple(sorted(draw.sample(range(rank), draw.randint(1, rank))))
    t = draw.choice(_TYPES)
    opcode = draw.choice(("and", "or") if t == "pred" else ("add", "add", "maximum", "multiply"))
    return _reduce(t, opcode, dims, over, draw.sample(range(rank), rank))


def _largest(t: str, dims: tuple[int, int], along: int) -> Case:
    """The largest number and where it is, as one reduction of pairs."""
    kept = (dims[1 - along],)
    lines = [
        "HloModule m", "f {", f"a = {t}[] parameter(0)", "i = s32[] parameter(1)", f"b = {t}[] parameter(2)",
        "j = s32[] parameter(3)", "more = pred[] compare(a, b), direction=GT", "same = pred[] compare(a, b), direction=EQ",
        "first = pred[] compare(i, j), direction=LT", "tie = pred[] and(same, first)", "take = pred[] or(more, tie)",
        f"v = {t}[] select(take, a, b)", "n = s32[] select(take, i, j)", f"ROOT t = ({t}[], s32[]) tuple(v, n)", "}",
        "ENTRY e {", f"p0 = {shape(t, dims)} parameter(0)", f"at = {shape('s32', dims)} iota(), iota_dimension={along}",
        f"low = {t}[] constant({least(t)})", "zero = s32[] constant(0)",
        f"ROOT r = ({shape(t, kept)}, {shape('s32', kept)}) reduce(p0, at, low, zero), dimensions={{{along}}}, to_apply=f",
        "}", "",
    ]  # fmt: skip
    return Case(
        "reduce, pairs", f"{t} {dims} over {along}", "\n".join(lines), together(varied(t, dims)), work=math.prod(dims)
    )


def _softmax(rows: int, size: int) -> Case:
    dims, kept = (rows, size), (rows,)
    full, part = shape("f32", dims), shape("f32", kept)
    lines = [
        "HloModule m", reducer("maximum", "f32"), reducer("add", "f32").replace("f {", "g {", 1), "ENTRY e {",
        f"x = {full} parameter(0)", "low = f32[] constant(-inf)", "zero = f32[] constant(0)",
        f"m = {part} reduce(x, low), dimensions={{1}}, to_apply=f", f"mb = {full} broadcast(m), dimensions={{0}}",
        f"d = {full} subtract(x, mb)", f"ex = {full} exponential(d)",
        f"s = {part} reduce(ex, zero), dimensions={{1}}, to_apply=g", f"sb = {full} broadcast(s), dimensions={{0}}",
        f"ROOT r = {full} divide(ex, sb)", "}", "",
    ]  # fmt: skip
    return Case("softmax", f"{dims}", "\n".join(lines), together(varied("f32", dims)), error=8, work=rows * size)
