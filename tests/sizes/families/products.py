"""Matrix products: every size of each side, every way to lie in memory, batches, vectors, several contracted sides."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator

from tests.sizes.case import EDGES, Case, program, shape, together, whole

#: types of operands and of the result
TYPES = (("f32", "f32"), ("f64", "f64"), ("bf16", "bf16"), ("f16", "f16"), ("bf16", "f32"), ("s8", "s32"), ("u8", "u32"), ("s16", "s32"), ("s32", "s32"), ("c64", "c64"), ("c128", "c128"))  # fmt: skip


def cases() -> Iterator[Case]:
    for m, k, n in itertools.product((0, 1, 2, 3, 17, 33), repeat=3):
        yield product("f32", "f32", m, k, n)
    for t, r in TYPES:
        for size in EDGES:
            yield product(t, r, size, 64, 48)
            yield product(t, r, 48, size, 64)
            yield product(t, r, 64, 48, size)
        draw = random.Random(f"{t} {r}")
        for _ in range(24):
            yield _placed(t, r, draw)
        for _ in range(12):
            yield _batched(t, r, draw)
        for _ in range(8):
            yield _contracted(t, r, draw)
    for size in (0, 1, 2, 3, 17, 1021, 4097, 65537):
        yield _vectors("f32", size)
        yield _vectors("s8", size)


def product(t: str, r: str, m: int, k: int, n: int) -> Case:
    """[m, k] by [k, n]."""
    op = "dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    text = program([shape(t, (m, k)), shape(t, (k, n))], shape(r, (m, n)), op)
    return Case("dot", f"{t} {r} {m}x{k}x{n}", text, together(_few(t, (m, k), k), _few(t, (k, n), k)), work=m * k * n)


def _few(t: str, dims: tuple[int, ...], terms: int):  # noqa: ANN202
    """Numbers whose products' sums stay exact: bf16 holds whole numbers up to 256."""
    return whole(t, dims, -1, 1) if t in ("bf16", "f16", "s8") or terms > 500 else whole(t, dims)


def _size(draw: random.Random, most: int = 130) -> int:
    return draw.choice([n for n in EDGES if n <= most])


def _order(draw: random.Random, rank: int) -> list[int]:
    return draw.sample(range(rank), rank)


def _placed(t: str, r: str, draw: random.Random) -> Case:
    """Either side contracted, every order in memory."""
    m, k, n = (_size(draw) for _ in range(3))
    left, right = draw.randrange(2), draw.randrange(2)
    a, b = ((m, k) if left else (k, m)), ((k, n) if not right else (n, k))
    orders = [_order(draw, 2) for _ in range(3)]
    op = f"dot(p0, p1), lhs_contracting_dims={{{left}}}, rhs_contracting_dims={{{right}}}"
    text = program([shape(t, a, orders[0]), shape(t, b, orders[1])], shape(r, (m, n), orders[2]), op)
    label = f"{t} {r} {a} {b} sides {left}{right} orders {orders}"
    return Case("dot, layouts", label, text, together(_few(t, a, k), _few(t, b, k)), work=m * k * n)


def _batched(t: str, r: str, draw: random.Random) -> Case:
    """Batches anywhere among the dimensions, in any order in memory."""
    batches = [draw.choice((0, 1, 2, 3, 5, 17)) for _ in range(draw.randint(1, 2))]
    m, k, n = (_size(draw, 33) for _ in range(3))
    operands, attributes = [], []
    for side, free in (("lhs", m), ("rhs", n)):
        names = [*range(len(batches)), "k", "free"]
        draw.shuffle(names)
        sizes = {"k": k, "free": free, **dict(enumerate(batches))}
        operands.append(tuple(sizes[x] for x in names))
        attributes.append(f"{side}_batch_dims={{{','.join(str(names.index(b)) for b in range(len(batches)))}}}")
        attributes.append(f"{side}_contracting_dims={{{names.index('k')}}}")
    result = (*batches, m, n)
    orders = [_order(draw, len(s)) for s in (*operands, result)]
    shapes = [shape(t, s, o) for s, o in zip(operands, orders, strict=False)]
    text = program(shapes, shape(r, result, orders[2]), f"dot(p0, p1), {', '.join(attributes)}")
    label = f"{t} {r} {shapes} {orders[2]} {attributes}"
    work = math.prod(result) * k
    return Case("dot, batches", label, text, together(*(_few(t, s, k) for s in operands)), work=work)


def _contracted(t: str, r: str, draw: random.Random) -> Case:
    """Two contracted sides at once."""
    a, b, m, n = draw.choice((1, 2, 3, 7)), _size(draw, 17), _size(draw, 33), _size(draw, 33)
    left, right = (a, m, b), (b, n, a)
    op = "dot(p0, p1), lhs_contracting_dims={0,2}, rhs_contracting_dims={2,0}"
    text = program([shape(t, left), shape(t, right)], shape(r, (m, n)), op)
    inputs = together(_few(t, left, a * b), _few(t, right, a * b))
    return Case("dot, two sides", f"{t} {r} {left} {right}", text, inputs, work=a * b * m * n)


def _vectors(t: str, size: int) -> Case:
    result = {"s8": "s32"}.get(t, t)
    text = program(
        [shape(t, (size,))] * 2, shape(result, ()), "dot(p0, p1), lhs_contracting_dims={0}, rhs_contracting_dims={0}"
    )
    return Case("dot, vectors", f"{t} {size}", text, together(*[whole(t, (size,), -1, 1)] * 2), work=size)
