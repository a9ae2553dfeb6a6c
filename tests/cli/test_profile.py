"""``heron profile``: the time of each step of a CPU program."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import heron as h
from heron.options import Options
from heron.runtime.cpu.executable import CpuExecutable
from tests.support import heron, program

LOOP = """HloModule loop

body {
  p = (s32[], f32[24,24]{1,0}) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  x = f32[24,24]{1,0} get-tuple-element(p), index=1
  one = s32[] constant(1)
  m = s32[] add(n, one)
  y = f32[24,24]{1,0} dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = f32[24,24]{1,0} tanh(y)
  ROOT r = (s32[], f32[24,24]{1,0}) tuple(m, z)
}

condition {
  p = (s32[], f32[24,24]{1,0}) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  seven = s32[] constant(7)
  ROOT c = pred[] compare(n, seven), direction=LT
}

ENTRY main {
  x = f32[24,24]{1,0} parameter(0)
  zero = s32[] constant(0)
  t = (s32[], f32[24,24]{1,0}) tuple(zero, x)
  w = (s32[], f32[24,24]{1,0}) while(t), condition=condition, body=body
  ROOT y = f32[24,24]{1,0} get-tuple-element(w), index=1
}
"""


def test_steps_of_a_loop_are_counted_by_their_runs(tmp_path: Path) -> None:
    path = tmp_path / "loop.hlo"
    path.write_text(LOOP)
    document = json.loads(heron("profile", path, "--runs", "2", "--json").out)
    products = [s for s in document["steps"] if s["kind"] == "gemm"]
    assert sum(s["runs"] for s in products) == 7
    assert sum(s["flops"] for s in products) == 7 * 2 * 24**3
    spent = [s["seconds"] for s in document["steps"]]
    assert all(s >= 0 for s in spent) and 0 < sum(spent) <= document["seconds"]
    assert spent == sorted(spent, reverse=True)


def test_the_table_names_kernels_and_library_calls() -> None:
    result = heron("profile", program("transformer_block"), "--runs", "1")
    assert result.code == 0, result.err
    assert "GB/s" in result.out and "between steps" in result.out
    assert "kernel" in result.out and "gemm" in result.out
    in_order = json.loads(heron("profile", program("transformer_block"), "--runs", "1", "--in-order", "--json").out)
    assert all(s["runs"] == 1 for s in in_order["steps"])


def test_values_are_the_same_and_nothing_is_counted_unasked() -> None:
    module = h.parse(LOOP)
    plain = h.compile(module, options=Options())
    counting = h.compile(module, options=Options(profile=True))
    assert isinstance(plain, CpuExecutable) and isinstance(counting, CpuExecutable) and counting.profile is not None
    x = np.linspace(-1, 1, 576, dtype=np.float32).reshape(24, 24)
    assert np.array_equal(plain(x), counting(x))
    assert plain.profile is None and counting.profile.calls == 1
    assert "heron_ticks" not in plain.stage("llvm") and "heron_ticks" in counting.stage("llvm")
    counting.profile.reset()
    assert counting.profile.calls == 0 and all(s.runs == 0 for s in counting.profile.steps())
