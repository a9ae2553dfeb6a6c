"""Random programs of an op or two on random meshes with random shardings, for the partitioner."""

from __future__ import annotations

import random
from collections.abc import Sequence

from heron.hlo.sharding.atoms import AtomicMesh
from tests.passes.sharding import window_cases
from tests.passes.sharding.drawing import FAMILIES, MESHES, STARTS, Case, Value, family

__all__ = ["FAMILIES", "Case", "case", "window_cases"]


def case(seed: int, only: Sequence[str] = ()) -> tuple[str, str]:
    """The family and the text of program number `seed`."""
    draw = random.Random(seed)
    name = draw.choice(list(only) or list(FAMILIES))
    made = Case(draw, AtomicMesh.of(draw.choice(MESHES)))
    return name, made.text(*FAMILIES[name](made))


@family
def elementwise(c: Case) -> Value:
    dims = c.sizes(c.draw.randrange(4))
    values = [c.parameter(dims) for _ in range(3)]
    for _ in range(c.draw.randrange(1, 5)):
        a, b = c.draw.choice(values), c.draw.choice(values)
        op = c.draw.choice(("add", "subtract", "multiply", "maximum", "negate", "abs"))
        values.append(c.add(f"{op}({a}, {b})" if op not in ("negate", "abs") else f"{op}({a})", dims))
    test = c.add(f"compare({values[0]}, {values[-1]}), direction=LT", dims, "pred")
    return c.add(f"select({test}, {values[1]}, {values[-1]})", dims), dims, "f32"


def _dot(c: Case, rank: int = 1) -> tuple[str, list[int]]:
    batch, left, right, both = (c.sizes(c.draw.randrange(n)) for n in (2, 3, 2, 3))
    both = both or [c.size()]
    names = {}
    for side, free in (("lhs", left), ("rhs", right)):
        labels = [("b", n) for n in range(len(batch))] + [("c", n) for n in range(len(both))]
        labels += [("f", n) for n in range(len(free))]
        order = list(range(len(labels)))
        if side == "lhs" or c.draw.random() < 0.5:
            c.draw.shuffle(order)
        shuffled = [labels[n] for n in order]
        size = {"b": batch, "c": both, "f": free}
        dims = [size[kind][n] for kind, n in shuffled]
        names[side] = (
            c.parameter(dims),
            [shuffled.index(("b", n)) for n in range(len(batch))],
            [shuffled.index(("c", n)) for n in range(len(both))],
            [n for kind, n in shuffled if kind == "f"],
        )
    result = batch + [left[n] for n in names["lhs"][3]] + [right[n] for n in names["rhs"][3]]
    attrs = ""
    for side in ("lhs", "rhs"):
        _, b, k, _ = names[side]
        attrs += f", {side}_contracting_dims={{{','.join(map(str, k))}}}"
        attrs += f", {side}_batch_dims={{{','.join(map(str, b))}}}" if b else ""
    return f"dot({names['lhs'][0]}, {names['rhs'][0]}){attrs}", result


@family
def dot(c: Case) -> Value:
    text, dims = _dot(c)
    return c.add(text, dims), dims, "f32"


@family
def sums_of_dots(c: Case) -> Value:
    """Partial sums that are added, scaled and converted before they are reduced."""
    m, n = c.sizes(2)
    terms: list[str] = []
    for _ in range(c.draw.randrange(1, 4)):
        k = c.size()
        a, b = c.parameter([m, k]), c.parameter([k, n])
        terms.append(c.add(f"dot({a}, {b}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}", [m, n]))
    total = terms[0]
    for term in terms[1:]:
        total = c.add(f"{c.draw.choice(('add', 'subtract'))}({total}, {term})", [m, n])
    if c.draw.random() < 0.5:
        total = c.add(f"negate({total})", [m, n])
    if c.draw.random() < 0.5:
        total = c.add(f"maximum({total}, {terms[0]})", [m, n])
    if c.draw.random() < 0.5:
        zero = c.scalar("0")
        return c.add(f"reduce({total}, {zero}), dimensions={{1}}, to_apply=add_f32", [m]), [m], "f32"
    return total, [m, n], "f32"


@family
def reduce(c: Case) -> Value:
    dims = c.sizes(c.draw.randrange(1, 4))
    gone = sorted(c.draw.sample(range(len(dims)), c.draw.randrange(1, len(dims) + 1)))
    kept = [n for d, n in enumerate(dims) if d not in gone]
    by = c.draw.choice(list(STARTS))
    start = c.scalar(c.draw.choice((STARTS[by], "2")))
    x = c.parameter(dims)
    text = f"reduce({x}, {start}), dimensions={{{','.join(map(str, gone))}}}, to_apply={by}"
    return c.add(text, kept), kept, "f32"


@family
def broadcast(c: Case) -> Value:
    dims = c.sizes(c.draw.randrange(1, 4))
    kept = sorted(c.draw.sample(range(len(dims)), c.draw.randrange(len(dims) + 1)))
    x = c.parameter([dims[d] for d in kept])
    return c.add(f"broadcast({x}), dimensions={{{','.join(map(str, kept))}}}", dims), dims, "f32"


@family
def transpose(c: Case) -> Value:
    dims = c.sizes(c.draw.randrange(1, 4))
    order = c.draw.sample(range(len(dims)), len(dims))
    x = c.parameter(dims)
    text = f"transpose({x}), dimensions={{{','.join(map(str, order))}}}"
    made = [dims[d] for d in order]
    return c.add(text, made), made, "f32"


@family
def reshape(c: Case) -> Value:
    factors = [c.draw.choice((1, 2, 2, 3, 4, 5, 6)) for _ in range(c.draw.randrange(1, 5))]

    def merged() -> list[int]:
        dims = [1]
        for n in factors:
            if c.draw.random() < 0.5:
                dims[-1] *= n
            else:
                dims.append(n)
        return dims if c.draw.random() < 0.3 or len(dims) == 1 else dims[1:] if dims[0] == 1 else dims

    before, after = merged(), merged()
    x = c.parameter(before)
    return c.add(f"reshape({x})", after), after, "f32"


@family
def iota(c: Case) -> Value:
    dims = c.sizes(c.draw.randrange(1, 4))
    kind = c.draw.choice(("s32", "f32", "s64", "u8", "bf16"))
    return c.add(f"iota(), iota_dimension={c.draw.randrange(len(dims))}", dims, kind), dims, kind


@family
def constant(c: Case) -> Value:
    n = c.size()
    values = ", ".join(str(c.draw.randrange(-9, 9)) for _ in range(n))
    return c.add(f"constant({{{values}}})", [n], "s32"), [n], "s32"


@family
def concatenate(c: Case) -> Value:
    dims = c.sizes(c.draw.randrange(1, 4))
    d = c.draw.randrange(len(dims))
    sizes = [c.size() for _ in range(c.draw.randrange(1, 4))]
    parts = [c.parameter([*dims[:d], n, *dims[d + 1 :]]) for n in sizes]
    made = [*dims[:d], sum(sizes), *dims[d + 1 :]]
    return c.add(f"concatenate({', '.join(parts)}), dimensions={{{d}}}", made), made, "f32"


@family
def pad(c: Case) -> Value:
    dims = c.sizes(c.draw.randrange(1, 4))
    padding, made = [], []
    for n in dims:
        low, high, inner = c.draw.choice(((0, 0, 0), (1, 2, 0), (-1, 1, 0), (2, 0, 1), (0, -1, 0), (3, 3, 2)))
        size = n + low + high + (n - 1) * inner
        low, high, inner, size = (low, high, inner, size) if size > 0 else (0, 0, 0, n)
        padding.append(f"{low}_{high}_{inner}")
        made.append(size)
    x, fill = c.parameter(dims), c.scalar("3")
    return c.add(f"pad({x}, {fill}), padding={'x'.join(padding)}", made), made, "f32"


@family
def slice_(c: Case) -> Value:
    dims = c.sizes(c.draw.randrange(1, 4))
    bounds, made = [], []
    for n in dims:
        start = c.draw.randrange(n) if c.draw.random() < 0.5 else 0
        limit = c.draw.randrange(start + 1, n + 1) if c.draw.random() < 0.5 else n
        stride = c.draw.choice((1, 1, 2, 3))
        bounds.append(f"[{start}:{limit}:{stride}]")
        made.append(-(-(limit - start) // stride))
    x = c.parameter(dims)
    return c.add(f"slice({x}), slice={{{', '.join(bounds)}}}", made), made, "f32"


@family
def reverse(c: Case) -> Value:
    dims = c.sizes(c.draw.randrange(1, 4))
    turned = sorted(c.draw.sample(range(len(dims)), c.draw.randrange(1, len(dims) + 1)))
    x = c.parameter(dims)
    return c.add(f"reverse({x}), dimensions={{{','.join(map(str, turned))}}}", dims), dims, "f32"


@family
def dynamic_slice(c: Case) -> Value:
    dims = c.sizes(c.draw.randrange(1, 3))
    made = [n if c.draw.random() < 0.4 else c.draw.randrange(1, n + 1) for n in dims]
    x = c.parameter(dims)
    starts = [c.parameter((), "s32") for _ in dims]
    text = f"dynamic-slice({', '.join([x, *starts])}), dynamic_slice_sizes={{{','.join(map(str, made))}}}"
    return c.add(text, made), made, "f32"


@family
def dynamic_update_slice(c: Case) -> Value:
    dims = c.sizes(c.draw.randrange(1, 3))
    own = [n if c.draw.random() < 0.4 else c.draw.randrange(1, n + 1) for n in dims]
    x, update = c.parameter(dims), c.parameter(own)
    starts = [c.parameter((), "s32") for _ in dims]
    return c.add(f"dynamic-update-slice({', '.join([x, update, *starts])})", dims), dims, "f32"


@family
def gather(c: Case) -> Value:
    rows, width = c.size(), c.size()
    count = c.sizes(c.draw.randrange(3))
    x, at = c.parameter([rows, width]), c.parameter(count, "s32")
    made = [*count, width]
    text = (
        f"gather({x}, {at}), offset_dims={{{len(count)}}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, "
        f"index_vector_dim={len(count)}, slice_sizes={{1,{width}}}"
    )
    return c.add(text, made), made, "f32"


@family
def scatter(c: Case) -> Value:
    rows, width = c.size(), c.size()
    count = c.sizes(c.draw.randrange(1, 3))
    x, at, updates = c.parameter([rows, width]), c.parameter(count, "s32"), c.parameter([*count, width])
    by = c.draw.choice(("add_f32", "maximum_f32"))
    text = (
        f"scatter({x}, {at}, {updates}), update_window_dims={{{len(count)}}}, inserted_window_dims={{0}}, "
        f"scatter_dims_to_operand_dims={{0}}, index_vector_dim={len(count)}, to_apply={by}"
    )
    return c.add(text, [rows, width]), [rows, width], "f32"


@family
def sort(c: Case) -> Value:
    dims = c.sizes(c.draw.randrange(1, 4))
    x = c.parameter(dims)
    text = f"sort({x}), dimensions={{{c.draw.randrange(len(dims))}}}, to_apply=less"
    return c.add(text, dims), dims, "f32"


def _loop(c: Case, dims: list[int], body: Sequence[str]) -> str:
    """A loop of three rounds, from a parameter on. `body` makes `y` of `x` and the round `n`; ``$`` is their shape."""
    shape = f"f32[{','.join(map(str, dims))}]"
    both = "{" + ", ".join([c.written(0, "s32"), c.written(len(dims))]) + "}"
    lines = "\n  ".join(line.replace("$", shape) for line in body)
    c.calls.append(
        f"""body {{
  t = (s32[], {shape}) parameter(0), sharding={both}
  n = s32[] get-tuple-element(t), index=0
  x = {shape} get-tuple-element(t), index=1
  one = s32[] constant(1)
  m = s32[] add(n, one)
  {lines}
  ROOT r = (s32[], {shape}) tuple(m, y)
}}
condition {{
  t = (s32[], {shape}) parameter(0), sharding={both}
  n = s32[] get-tuple-element(t), index=0
  end = s32[] constant(3)
  ROOT r = pred[] compare(n, end), direction=LT
}}"""
    )
    x, zero = c.parameter(dims), c.scalar("0", "s32")
    c.lines.append(f"  t = (s32[], {shape}) tuple({zero}, {x})")
    c.lines.append(f"  w = (s32[], {shape}) while(t), condition=condition, body=body, sharding={both}")
    return c.add("get-tuple-element(w), index=1", dims)


@family
def loop(c: Case) -> Value:
    dims = c.sizes(c.draw.randrange(1, 3))
    return _loop(c, dims, [f"y = $ add(x, x), sharding={c.written(len(dims))}"]), dims, "f32"


@family
def filling_loop(c: Case) -> Value:
    """Each round reads a slice of what is carried, and writes another one, which may be a partial sum."""
    dims = c.sizes(c.draw.randrange(1, 4))
    part = [1, *dims[1:]]
    small = f"f32[{','.join(map(str, part))}]"
    numbers = ", ".join(["zero"] * (len(dims) - 1))
    starts = f"n, {numbers}" if numbers else "n"
    sizes = ",".join(map(str, part))
    a, b, d = (c.written(len(dims)) for _ in range(3))
    body = [
        "zero = s32[] constant(0)",
        f"s = {small} dynamic-slice(x, {starts}), dynamic_slice_sizes={{{sizes}}}, sharding={a}",
        f"u = {small} add(s, s), sharding={b}",
        f"y = $ dynamic-update-slice(x, u, {starts}), sharding={d}",
    ]
    return _loop(c, dims, body), dims, "f32"


@family
def convert(c: Case) -> Value:
    dims = c.sizes(c.draw.randrange(1, 4))
    x = c.parameter(dims)
    kind = c.draw.choice(("s32", "bf16", "s8", "f64"))
    return c.add(f"convert({x})", dims, kind), dims, kind


@family
def bitcast_convert(c: Case) -> Value:
    dims = c.sizes(c.draw.randrange(1, 3))
    x = c.parameter(dims)
    return c.add(f"bitcast-convert({x})", [*dims, 2], "u16"), [*dims, 2], "u16"
