"""Families of random programs with windows."""

from __future__ import annotations

from collections.abc import Sequence

from tests.passes.sharding.drawing import STARTS, Case, Value, family


def _window(c: Case, dims: Sequence[int]) -> tuple[str, list[int]]:
    sizes, strides, pads, made = [], [], [], []
    for n in dims:
        size, stride = c.draw.randrange(1, min(n, 4) + 1), c.draw.choice((1, 1, 2))
        low, high = c.draw.randrange(size), c.draw.randrange(size)
        if c.draw.random() < 0.4:
            size, stride, low, high = 1, 1, 0, 0
        sizes.append(size)
        strides.append(stride)
        pads.append(f"{low}_{high}")
        made.append((n + low + high - size) // stride + 1)
    text = f"window={{size={'x'.join(map(str, sizes))} stride={'x'.join(map(str, strides))} pad={'x'.join(pads)}}}"
    return text, made


@family
def reduce_window(c: Case) -> Value:
    dims = c.sizes(c.draw.randrange(1, 4))
    window, made = _window(c, dims)
    by = c.draw.choice((*STARTS, "linked_f32"))
    x, start = c.parameter(dims), c.scalar(c.draw.choice((STARTS.get(by, "0"), "2")))
    return c.add(f"reduce-window({x}, {start}), {window}, to_apply={by}", made), made, "f32"


@family
def reduce_windows(c: Case) -> Value:
    """Of two arrays; initial values that nobody knows."""
    dims = c.sizes(c.draw.randrange(1, 4))
    window, made = _window(c, dims)
    x, y, a, b = c.parameter(dims), c.parameter(dims), c.parameter(()), c.scalar(c.draw.choice(("-inf", "1")))
    if c.draw.random() < 0.3:
        a = c.scalar("0")
    text = c.draw.choice((f"reduce-window({x}, {y}, {a}, {b})", f"reduce-window({y}, {x}, {b}, {a})"))
    both = f"{text}, {window}, to_apply=both_f32"
    shape = f"f32[{','.join(map(str, made))}]"
    name = f"v{len(c.lines)}"
    s = c.mesh.write(c.sharding(len(made)))
    c.lines.append(f"  {name} = ({shape}, {shape}) {both}, sharding={{{s}, {s}}}")
    return c.add(f"get-tuple-element({name}), index={c.draw.randrange(2)}", made), made, "f32"


@family
def cumulative(c: Case) -> Value:
    dims = c.sizes(c.draw.randrange(1, 3))
    d, by = c.draw.randrange(len(dims)), c.draw.choice(("add_f32", "maximum_f32"))
    n = dims[d]
    sizes = "x".join(str(n if e == d else 1) for e in range(len(dims)))
    ends = f"{n - 1}_0" if c.draw.random() < 0.6 else f"0_{n - 1}"
    pads = "x".join(ends if e == d else "0_0" for e in range(len(dims)))
    x, start = c.parameter(dims), c.scalar(STARTS[by])
    text = f"reduce-window({x}, {start}), window={{size={sizes} pad={pads}}}, to_apply={by}"
    return c.add(text, dims), dims, "f32"


@family
def select_and_scatter(c: Case) -> Value:
    dims = c.sizes(c.draw.randrange(1, 3))
    window, made = _window(c, dims)
    window = window[: window.index(" pad")] + "}"
    sizes = [int(n) for n in window.split("size=")[1].split(" ")[0].split("x")]
    strides = [int(n) for n in window.split("stride=")[1].rstrip("}").split("x")]
    made = [(n - size) // stride + 1 for n, size, stride in zip(dims, sizes, strides, strict=True)]
    x, source, start = c.parameter(dims), c.parameter(made), c.scalar("0")
    text = f"select-and-scatter({x}, {source}, {start}), {window}, select=greater, scatter=add_f32"
    return c.add(text, dims), dims, "f32"


@family
def convolution(c: Case) -> Value:
    batch, features, out = c.draw.choice((1, 2, 4)), c.draw.choice((1, 2, 4)), c.draw.choice((2, 3, 4))
    space = c.sizes(c.draw.randrange(1, 3))
    window, made = _window(c, space)
    kernel = [int(n) for n in window.split("size=")[1].split(" ")[0].split("x")]
    groups = c.draw.choice((1, 1, features))
    labels = "01"[: len(space)]
    x = c.parameter([batch, *space, features])
    k = c.parameter([*kernel, features // groups, out * groups])
    dims = [batch, *made, out * groups]
    text = (
        f"convolution({x}, {k}), {window}, dim_labels=b{labels}f_{labels}io->b{labels}f, feature_group_count={groups}"
    )
    return c.add(text, dims), dims, "f32"
