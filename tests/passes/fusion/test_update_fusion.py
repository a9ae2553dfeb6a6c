"""Updates that compute their whole result, compiled and run on the simulated GPU: values, launches, no copies."""

from __future__ import annotations

import numpy as np
import pytest
from ml_dtypes import bfloat16

import heron
from heron.evaluator import Evaluator
from heron.hlo.text import parse

PROGRAM = """HloModule m

add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}

ENTRY main {{
  n = s32[{n},1] parameter(0)
  u = f32[{n},8] parameter(1)
  p = f32[9,8] parameter(2)
  one = f32[] constant(1)
  ones = f32[9,8] broadcast(one), dimensions={{}}
  twice = f32[9,8] add(p, p)
  ROOT s = f32[9,8] scatter({operand}, n, u), update_window_dims={{1}}, inserted_window_dims={{0}},
    scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=add
}}
"""


@pytest.mark.parametrize("operand", ["p", "ones", "twice"])
@pytest.mark.parametrize(("n", "launches"), [(20, 1), (300, 2)])
def test_launches(operand: str, n: int, launches: int) -> None:
    """Many updates are sorted before, in one more kernel."""
    source = PROGRAM.format(n=n, operand=operand)
    rng = np.random.default_rng(n)
    inputs = [
        rng.integers(-2, 11, (n, 1)).astype(np.int32),
        *(rng.normal(size=d).astype(np.float32) for d in ((n, 8), (9, 8))),
    ]
    compiled = heron.compile(parse(source), "sim:sm_90")
    found, again = compiled(*inputs), compiled(*inputs)
    np.testing.assert_allclose(found, Evaluator(parse(source)).run(*inputs), rtol=1e-5, atol=1e-5)
    assert found.tobytes() == again.tobytes()
    assert sum(len(k.instructions) for k in compiled.kernels) == launches
    assert "copy" not in compiled.trace.thunks


def test_scalars() -> None:
    """A scalar that may not be overwritten is copied inside, as an array is."""
    source = """HloModule m

new {
  a = f32[] parameter(0)
  b = bf16[] parameter(1)
  c = f32[] parameter(2)
  d = bf16[] parameter(3)
  s = f32[] add(a, c)
  ROOT t = (f32[], bf16[]) tuple(s, d)
}

ENTRY main {
  x = f32[] parameter(0)
  y = bf16[] parameter(1)
  n = s32[0] parameter(2)
  u = f32[] parameter(3)
  v = bf16[] parameter(4)
  ROOT s = (f32[], bf16[]) scatter(x, y, n, u, v), update_window_dims={}, inserted_window_dims={},
    scatter_dims_to_operand_dims={}, index_vector_dim=0, to_apply=new
}
"""
    inputs = [np.dtype(t).type(v) for t, v in (("f4", 1), (bfloat16, 2), ("f4", 3), (bfloat16, 4))]
    inputs.insert(2, np.zeros(0, np.int32))
    found = heron.compile(parse(source), "sim:sm_90", heron.Options(check="verify"))(*inputs)
    assert [float(v) for v in found] == [4, 4]


def test_a_loop_keeps_its_state_in_place() -> None:
    source = """HloModule m

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

body {
  t = (s32[], f32[9], s32[20,1], f32[20]) parameter(0)
  k = s32[] get-tuple-element(t), index=0
  x = f32[9] get-tuple-element(t), index=1
  n = s32[20,1] get-tuple-element(t), index=2
  u = f32[20] get-tuple-element(t), index=3
  one = s32[] constant(1)
  k1 = s32[] add(k, one)
  y = f32[9] scatter(x, n, u), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0},
    index_vector_dim=1, to_apply=add
  ROOT r = (s32[], f32[9], s32[20,1], f32[20]) tuple(k1, y, n, u)
}

more {
  t = (s32[], f32[9], s32[20,1], f32[20]) parameter(0)
  k = s32[] get-tuple-element(t), index=0
  end = s32[] constant(300)
  ROOT l = pred[] compare(k, end), direction=LT
}

ENTRY main {
  x = f32[9] parameter(0)
  n = s32[20,1] parameter(1)
  u = f32[20] parameter(2)
  zero = s32[] constant(0)
  t = (s32[], f32[9], s32[20,1], f32[20]) tuple(zero, x, n, u)
  w = (s32[], f32[9], s32[20,1], f32[20]) while(t), condition=more, body=body
  ROOT r = f32[9] get-tuple-element(w), index=1
}
"""
    rng = np.random.default_rng(3)
    inputs = [np.zeros(9, np.float32), rng.integers(0, 9, (20, 1)).astype(np.int32), np.ones(20, np.float32)]
    compiled = heron.compile(parse(source), "sim:sm_90")
    np.testing.assert_allclose(compiled(*inputs), Evaluator(parse(source)).run(*inputs))
    (scatter,) = [k for k in compiled.kernels if k.emitter == "scatter"]
    assert scatter.notes["updates"] == "few" and "operand" not in scatter.notes


def test_a_slice_into_a_parameter_joins_its_reader() -> None:
    """A cache with one more entry, and what is summed of it: one kernel, no copy."""
    source = """HloModule m

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY main {
  cache = f32[40,64] parameter(0)
  row = f32[1,64] parameter(1)
  at = s32[] parameter(2)
  zero = s32[] constant(0)
  new = f32[40,64] dynamic-update-slice(cache, row, at, zero)
  nothing = f32[] constant(0)
  sums = f32[40] reduce(new, nothing), dimensions={1}, to_apply=add
  ROOT t = (f32[40,64], f32[40]) tuple(new, sums)
}
"""
    rng = np.random.default_rng(4)
    cache, row = (rng.normal(size=d).astype(np.float32) for d in ((40, 64), (1, 64)))
    compiled = heron.compile(parse(source), "sim:sm_90")
    for at in (0, 7, 39, 100, -3):
        inputs = [cache, row, np.int32(at)]
        for found, wanted in zip(compiled(*inputs), Evaluator(parse(source)).run(*inputs), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    assert sum(len(k.instructions) for k in compiled.kernels) == 1
    assert "copy" not in compiled.trace.thunks
