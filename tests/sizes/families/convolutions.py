"""Convolutions in one, two and three dimensions of space: sizes, steps, dilation, groups, and every order of dimensions."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator

from tests.sizes.case import Case, program, shape, together, whole

_TYPES = ("f32", "f64", "bf16", "f16", "c64", "s8", "s32")


def cases() -> Iterator[Case]:
    for t in _TYPES:
        draw = random.Random(t)
        for _ in range(160 if t == "f32" else 40):
            case = _drawn(t, draw)
            if case is not None:
                yield case


def _drawn(t: str, draw: random.Random) -> Case | None:
    """One case; None where the window is larger than what it moves over."""
    rank = draw.choice((1, 1, 2, 2, 2, 3))
    most = {1: (0, 1, 2, 3, 7, 16, 17, 33, 129, 1021), 2: (1, 2, 3, 7, 8, 16, 17, 33), 3: (1, 2, 3, 5, 8)}[rank]
    space = [draw.choice(most) for _ in range(rank)]
    kernel = [draw.choice((1, 1, 2, 3, 4, 5)) for _ in range(rank)]
    strides = [draw.choice((1, 1, 1, 2, 3)) for _ in range(rank)]
    pads = [(draw.randint(0, k), draw.randint(0, k)) for k in kernel]
    outer = [draw.choice((1, 1, 1, 2)) for _ in range(rank)]
    inner = [draw.choice((1, 1, 1, 2, 3)) for _ in range(rank)]
    groups = draw.choice((1, 1, 1, 2, 3))
    features = groups * draw.choice((1, 2, 3, 8, 17))
    if draw.random() < 0.15:  # each channel by itself
        groups = features
    outs = groups * draw.choice((1, 1, 2, 3, 8, 16, 17))
    batch = draw.choice((1, 1, 2, 3, 5))
    result = []
    for size, k, s, (before, after), o, i in zip(space, kernel, strides, pads, outer, inner, strict=True):
        padded = (max(size - 1, -1) * o + 1 if size else 0) + before + after
        wide = (k - 1) * i + 1
        if padded < wide:
            return None
        result.append((padded - wide) // s + 1)
    letters = [str(d) for d in range(rank)]
    operands, shapes, labels = [], [], []
    for names, sizes in (
        ("bf", {"b": batch, "f": features, **dict(zip(letters, space, strict=True))}),
        ("io", {"i": features // groups, "o": outs, **dict(zip(letters, kernel, strict=True))}),
        ("bf", {"b": batch, "f": outs, **dict(zip(letters, result, strict=True))}),
    ):
        order = [*names, *letters]
        draw.shuffle(order)
        dims = tuple(sizes[x] for x in order)
        labels.append("".join(order))
        operands.append(dims)
        shapes.append(shape(t, dims))
    if t == "s8":
        shapes[2] = shape("s32", operands[2])

    def each(values: list[int]) -> str:
        return "x".join(map(str, values))

    window = (
        f"window={{size={each(kernel)} stride={each(strides)} pad={'x'.join(f'{a}_{b}' for a, b in pads)} "
        f"lhs_dilate={each(outer)} rhs_dilate={each(inner)}}}"
    )
    op = f"convolution(p0, p1), {window}, dim_labels={labels[0]}_{labels[1]}->{labels[2]}, feature_group_count={groups}"
    work = math.prod(operands[2]) * math.prod(kernel) * (features // groups)
    if work > 1 << 23:
        return None
    narrow = t in ("bf16", "f16", "s8")
    inputs = together(*(whole(t, dims, *((-1, 1) if narrow else (-2, 2))) for dims in operands[:2]))
    return Case("convolution", f"{t} {shapes[0]} {op}", program(shapes[:2], shapes[2], op), inputs, work=work)
