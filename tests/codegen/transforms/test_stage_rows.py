"""Functions along a short row whose results are written over what was read."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from tests.codegen.transforms.kernels import apply

KERNEL = """
func.func @k(%in: tensor<{rows}x{n}x{t}>, %x: tensor<{rows}x{t}>, %out: tensor<{rows}x{n}x{t}>{alias}, %lo: index, %hi: index) -> tensor<{rows}x{n}x{t}> attributes {{xla_gpu.entry}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant {n} : index
  %r = scf.for %i = %lo to %hi step %c1 iter_args(%a = %out) -> (tensor<{rows}x{n}x{t}>) {{
    %s = scf.for %j = %c0 to %n step %c1 iter_args(%b = %a) -> (tensor<{rows}x{n}x{t}>) {{
      %u = tensor.extract %in[%i, %j] : tensor<{rows}x{n}x{t}>
      %v = tensor.extract %x[%i] : tensor<{rows}x{t}>
      %w = {op} : {t}
      %d = tensor.insert %w into %b[%i, %j] : tensor<{rows}x{n}x{t}>
      scf.yield %d : tensor<{rows}x{n}x{t}>
    }}
    scf.yield %s : tensor<{rows}x{n}x{t}>
  }}
  func.return %r : tensor<{rows}x{n}x{t}>
}}
"""
ALIAS = " {xla_gpu.alias = 0 : i64}"


def staged(n: int = 13, t: str = "f32", alias: str = ALIAS, op: str = "math.tanh %u") -> str:
    return apply(KERNEL.format(rows=40, n=n, t=t, alias=alias, op=op), "stage-rows")


@pytest.mark.parametrize("n", [9, 13, 30])
def test_functions_go_to_a_tile_first(n: int) -> None:
    text = staged(n)
    assert text.count("scf.for") == 3 and f"tensor.empty() : tensor<{n}xf32>" in text
    first, second = text.split("scf.for")[2:]
    assert "math.tanh" in first and "math.tanh" not in second


@pytest.mark.parametrize(
    "options",
    [
        {"alias": ""},
        {"op": "arith.mulf %u, %v"},
        {"t": "f64"},
        {"n": 8},
        {"n": 16},
        {"n": 45},
    ],
    ids=["not in place", "no function", "double", "written out", "whole vectors", "long"],
)
def test_other_loops_stay(options: dict) -> None:
    text = staged(**options)
    assert "tensor.empty" not in text and text.count("scf.for") == 2


@pytest.mark.parametrize(("n", "is_staged"), [(9, False), (12, False), (20, False), (11, True), (13, True), (31, True)])
def test_without_masks_rows_that_end_with_one_smaller_vector_stay(n: int, is_staged: bool) -> None:
    text = apply(KERNEL.format(rows=40, n=n, t="f32", alias=ALIAS, op="math.tanh %u"), "stage-rows", vector_bits=256)
    assert ("tensor.empty" in text) == is_staged


@pytest.mark.parametrize("n", [3, 6, 11, 13, 15, 20, 30, 45])
@pytest.mark.parametrize("t", ["f32", "f64"])
def test_states_of_loops(t: str, n: int) -> None:
    """Rows that are changed step by step: normalised, by functions of themselves, and scaled where a number says so."""
    dtype = {"f32": np.float32, "f64": np.float64}[t]
    text = f"""HloModule m
add {{ a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  ROOT s = {t}[] add(a, b) }}
body {{
  s = (s32[], {t}[70,{n}]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = {t}[70,{n}] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  zero = {t}[] constant(0)
  sums = {t}[70] reduce(x, zero), dimensions={{1}}, to_apply=add
  wide = {t}[70,{n}] broadcast(sums), dimensions={{0}}
  t = {t}[70,{n}] tanh(x)
  d = {t}[70,{n}] subtract(t, wide)
  c = {t}[] constant(0.125)
  cs = {t}[70,{n}] broadcast(c), dimensions={{}}
  m = {t}[70,{n}] multiply(d, cs)
  p = pred[70,{n}] compare(wide, m), direction=GT
  y = {t}[70,{n}] select(p, m, x)
  ROOT r = (s32[], {t}[70,{n}]) tuple(next, y)
}}
condition {{
  s = (s32[], {t}[70,{n}]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(7)
  ROOT l = pred[] compare(i, n), direction=LT
}}
ENTRY e {{
  x = {t}[70,{n}] parameter(0)
  zero = s32[] constant(0)
  s = (s32[], {t}[70,{n}]) tuple(zero, x)
  w = (s32[], {t}[70,{n}]) while(s), condition=condition, body=body
  ROOT r = {t}[70,{n}] get-tuple-element(w), index=1
}}"""
    module = heron.parse(text)
    x = np.random.default_rng(n).standard_normal((70, n)).astype(dtype)
    (wanted,) = heron.evaluate(module, x)
    np.testing.assert_allclose(heron.compile(module, "cpu").run([x])[0], wanted, rtol=2e-5, atol=2e-6)
