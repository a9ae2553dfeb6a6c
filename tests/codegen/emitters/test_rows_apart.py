"""Sums over dimensions that do not lie next to each other: the short rows of each result are columns on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron import targets
from heron.codegen.emit import emit_fusion
from heron.evaluator import evaluate
from tests.codegen.emitters.test_reduction import program
from tests.codegen.run_kernel import check, root_fusion

RNG = np.random.default_rng(3)

#: short rows of each result, apart from each other: a tile for all results, several tiles, a prime number of results
APART = [
    ((16, 4, 7), [0, 2]),
    ((16, 300, 17), [0, 2]),
    ((9, 30, 20, 10), [1, 3]),
    ((3, 50, 199, 5), [1, 3]),
    ((17, 2, 1, 63), [0, 3]),
    ((6, 3, 31, 2, 4), [0, 1, 3, 4]),
]


@pytest.mark.parametrize(("shape", "dims"), APART)
@pytest.mark.parametrize(("op", "init"), [("add", "2.5"), ("maximum", "-inf")])
@pytest.mark.parametrize("type_", ["f32", "bf16", "s8", "f64"])
def test_short_rows_are_columns(shape: tuple[int, ...], dims: list[int], op: str, init: str, type_: str) -> None:
    if type_ == "s8":
        init = init.replace("2.5", "2").replace("-inf", "-128")
    name = {"f32": "float32", "bf16": "bfloat16", "s8": "int8", "f64": "float64"}[type_]
    source = program(shape, dims, type_, op, init)
    assert emit_fusion(root_fusion(source), "k", targets.get("cpu")).notes["form"].startswith("columns")
    check(source, [RNG.integers(-1, 2, shape).astype(name)], parts=3)


@pytest.mark.parametrize(("shape", "dims"), APART)
def test_short_rows_of_several_reduces(shape: tuple[int, ...], dims: list[int]) -> None:
    """Pairs, complex numbers, an output of every element, and an array that repeats along the rows."""
    kept = [d for d in range(len(shape)) if d not in dims]
    source, result = (",".join(map(str, n)) for n in (shape, [shape[d] for d in kept]))
    over = f"dimensions={{{','.join(map(str, dims))}}}"
    text = f"""HloModule m
sum {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
both {{ a = c64[] parameter(0) b = c64[] parameter(1) ROOT c = c64[] add(a, b) }}
best {{ a = f32[] parameter(0) i = s32[] parameter(1) b = f32[] parameter(2) j = s32[] parameter(3)
  g = pred[] compare(a, b), direction=GT e = pred[] compare(a, b), direction=EQ l = pred[] compare(i, j), direction=LT
  t = pred[] and(e, l) s = pred[] or(g, t) v = f32[] select(s, a, b) w = s32[] select(s, i, j)
  ROOT r = (f32[], s32[]) tuple(v, w) }}
ENTRY e {{
  x = f32[{source}] parameter(0) m = f32[{result}] parameter(1) c = c64[{source}] parameter(2)
  z = f32[] constant(0) y = c64[] constant((0, 0)) low = f32[] constant(-inf) k = s32[] constant(0)
  n = f32[{source}] broadcast(m), dimensions={{{",".join(map(str, kept))}}}
  d = f32[{source}] subtract(x, n) q = f32[{source}] multiply(d, d)
  i = s32[{source}] iota(), iota_dimension={dims[-1]}
  s = f32[{result}] reduce(q, z), {over}, to_apply=sum
  u = f32[{result}] add(s, m)
  v = c64[{result}] reduce(c, y), {over}, to_apply=both
  p = (f32[{result}], s32[{result}]) reduce(d, i, low, k), {over}, to_apply=best
  w = f32[{result}] get-tuple-element(p), index=0
  j = s32[{result}] get-tuple-element(p), index=1
  ROOT r = (f32[{source}], f32[{result}], c64[{result}], f32[{result}], s32[{result}]) tuple(d, u, v, w, j)
}}"""
    arrays = [
        RNG.integers(-9, 10, n).astype(t) for n, t in ((shape, "f"), ([shape[d] for d in kept], "f"), (shape, "F"))
    ]
    module = heron.load(text)
    for got, want in zip(heron.compile(module).run(arrays), evaluate(module, *arrays), strict=True):
        np.testing.assert_array_equal(got, want)
