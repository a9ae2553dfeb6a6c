"""Epilogues that read a sum in several shapes, which differ in dimensions of one element."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.codegen.run_gpu_kernel import check_sim
from tests.codegen.run_kernel import check


def _epilogue(rng: np.random.Generator, length: int) -> tuple[str, tuple[int, ...]]:
    """A fusion of a sum and what is computed from it, in shapes that differ in dimensions of one element; its array."""
    views = [[(), (1,), (1, 1)], [(5,), (1, 5), (5, 1), (1, 5, 1)]][rng.integers(2)]
    kept = views[rng.integers(len(views))]
    d = int(rng.integers(len(kept) + 1))
    shape = (*kept[:d], 40, *kept[d:])
    text = lambda dims: f"f32[{','.join(map(str, dims))}]"  # noqa: E731
    lines = [f"p = {text(shape)} parameter(0)", "z = f32[] constant(0)"]
    lines.append(f"v0 = {text(kept)} reduce(p, z), dimensions={{{d}}}, to_apply=r")
    values = [("v0", kept)]

    def add(expression: str, dims: tuple[int, ...]) -> str:
        values.append((f"v{len(values)}", dims))
        lines.append(f"{values[-1][0]} = {text(dims)} {expression}")
        return values[-1][0]

    def some(dims: tuple[int, ...]) -> str:
        name, own = values[rng.integers(max(0, len(values) - 5), len(values))]
        return name if own == dims else add(f"reshape({name})", dims)

    for _ in range(length):
        dims = views[rng.integers(len(views))]
        a = some(dims)
        if rng.integers(3):
            add(f"{rng.choice(_BINARY)}({a}, {some(dims)})", dims)
        else:
            add(f"{rng.choice(['abs', 'negate', 'floor'])}({a})", dims)
    dims = views[1]  # the last one reads a value as it is, and what was computed from it by way of another shape
    early = add(f"abs({some(dims)})", dims)
    other = add(f"negate({some(views[0])})", views[0])
    last = add(f"{rng.choice(_BINARY)}({other}, {some(views[0])})", views[0])
    add(f"subtract({add(f'reshape({last})', dims)}, {early})", dims)
    lines[-1] = f"ROOT {lines[-1]}"
    result = text(values[-1][1])
    return (
        f"""HloModule m
r {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
f {{ {chr(10).join(lines)} }}
ENTRY e {{ p = {text(shape)} parameter(0) ROOT k = {result} fusion(p), kind=kInput, calls=f }}""",
        shape,
    )


_BINARY = ["add", "subtract", "maximum", "minimum"]


@settings(max_examples=30)
@given(st.integers(0, 1 << 30), st.integers(0, 6))
def test_an_epilogue_reads_the_sum_in_several_shapes(seed: int, length: int) -> None:
    """The one place of a dimension of one element goes by several names."""
    rng = np.random.default_rng(seed)
    source, shape = _epilogue(rng, length)
    x = rng.integers(-9, 9, shape).astype(np.float32)
    check(source, [x])
    check_sim(source, [x])
