"""What moves elements: transposes, copies between orders, concatenates, pads, slices, reverses, reshapes, broadcasts."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from tests.sizes.case import EDGES, Case, program, shape, together, varied

_TYPES = ("f32", "bf16", "s8", "f64", "c128", "pred", "s4")


def cases() -> Iterator[Case]:
    for size in EDGES:
        for other in (1, 2, 17, 33, 65):
            yield _transpose("f32", (size, other), (1, 0))
        yield _transpose("s8", (3, size, 5), (0, 2, 1))
        yield _copy("f32", (size, 33), [1, 0], [0, 1])
        yield _concatenate("f32", [(size, 3), (1, 3), (size, 3)], 0)
        yield _concatenate("s8", [(3, size), (3, 0), (3, 2)], 1)
    draw = random.Random(0)
    for t in _TYPES:
        for _ in range(24):
            rank = draw.randint(1, 5)
            dims = tuple(draw.choice(EDGES[: {1: 24, 2: 18, 3: 12, 4: 8, 5: 6}[rank]]) for _ in range(rank))
            orders = [draw.sample(range(rank), rank) for _ in range(2)]
            yield _transpose(t, dims, tuple(draw.sample(range(rank), rank)), *orders)
            yield _copy(t, dims, *orders)
            yield _reversed(t, dims, draw.sample(range(rank), draw.randint(1, rank)), orders[0])
            yield _padded(t, dims, draw)
            yield _sliced(t, dims, draw)
            yield _broadcast(t, dims, draw)
            yield _reshaped(t, dims, draw)
            along = draw.randrange(rank)
            parts = [
                tuple(draw.choice((0, 1, 2, 5)) if n == along else d for n, d in enumerate(dims)) for _ in range(3)
            ]
            yield _concatenate(t, [dims, *parts], along)


def _case(family: str, t: str, operands: list[tuple[int, ...]], shapes: list[str], result: str, op: str) -> Case:
    text = program(shapes, result, op)
    work = sum(math.prod(d) for d in operands)
    return Case(family, f"{shapes} {op} {result}", text, together(*(varied(t, d) for d in operands)), work=work)


def _transpose(t, dims, by, order=None, out=None) -> Case:  # noqa: ANN001
    result = tuple(dims[d] for d in by)
    op = f"transpose(p0), dimensions={{{','.join(map(str, by))}}}"
    return _case("transpose", t, [dims], [shape(t, dims, order)], shape(t, result, out), op)


def _copy(t, dims, order, out) -> Case:  # noqa: ANN001
    return _case("copy", t, [dims], [shape(t, dims, order)], shape(t, dims, out), "copy(p0)")


def _reversed(t, dims, along, order) -> Case:  # noqa: ANN001
    op = f"reverse(p0), dimensions={{{','.join(map(str, along))}}}"
    return _case("reverse", t, [dims], [shape(t, dims, order)], shape(t, dims, order), op)


def _padded(t, dims, draw) -> Case:  # noqa: ANN001
    edges = [
        (draw.randint(0 if not d else -min(d // 2, 2), 3), draw.randint(0, 3), draw.choice((0, 0, 1, 2))) for d in dims
    ]
    result = tuple((d + max(d - 1, 0) * i) + a + b for d, (a, b, i) in zip(dims, edges, strict=True))
    words = "x".join(f"{a}_{b}_{i}" for a, b, i in edges)
    return _case("pad", t, [dims, ()], [shape(t, dims), f"{t}[]"], shape(t, result), f"pad(p0, p1), padding={words}")


def _sliced(t, dims, draw) -> Case:  # noqa: ANN001
    bounds = [(a := draw.randint(0, d), draw.randint(a, d), draw.choice((1, 1, 2, 3))) for d in dims]
    result = tuple(math.ceil((b - a) / s) for a, b, s in bounds)
    words = ", ".join(f"[{a}:{b}:{s}]" for a, b, s in bounds)
    return _case("slice", t, [dims], [shape(t, dims)], shape(t, result), f"slice(p0), slice={{{words}}}")


def _broadcast(t, dims, draw) -> Case:  # noqa: ANN001
    kept = sorted(draw.sample(range(len(dims)), draw.randint(0, len(dims))))
    operand = tuple(dims[d] for d in kept)
    op = f"broadcast(p0), dimensions={{{','.join(map(str, kept))}}}"
    order = draw.sample(range(len(dims)), len(dims))
    return _case("broadcast", t, [operand], [shape(t, operand)], shape(t, dims, order), op)


def _reshaped(t, dims, draw) -> Case:  # noqa: ANN001
    cut = draw.randint(0, len(dims))
    result = tuple(x for x in (math.prod(dims[:cut]), 1, math.prod(dims[cut:])))
    orders = [draw.sample(range(len(d)), len(d)) for d in (dims, result)]
    return _case("reshape", t, [dims], [shape(t, dims, orders[0])], shape(t, result, orders[1]), "reshape(p0)")


def _concatenate(t, parts, along) -> Case:  # noqa: ANN001
    total = tuple(sum(p[along] for p in parts) if n == along else d for n, d in enumerate(parts[0]))
    names = ", ".join(f"p{n}" for n in range(len(parts)))
    op = f"concatenate({names}), dimensions={{{along}}}"
    return _case("concatenate", t, parts, [shape(t, p) for p in parts], shape(t, total), op)
