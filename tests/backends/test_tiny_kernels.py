"""Modules whose kernels do next to nothing, outside loops, are compiled without LLVM's optimiser, to the same values."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron.backends.compiler import Compilation
from heron.backends.cpu import machine
from heron.options import Options
from heron.targets import get
from heron.trace import Trace

ELEMENTWISE = """HloModule m
ENTRY e {
  x = f32[%d] parameter(0)
  y = f32[%d] tanh(x)
  ROOT z = f32[%d] multiply(y, x)
}"""
SUM = """HloModule m
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
ENTRY e {
  x = f32[90] parameter(0)
  zero = f32[] constant(0)
  ROOT y = f32[] reduce(x, zero), dimensions={0}, to_apply=add
}"""
LOOP = """HloModule m
body {
  s = (s32[], f32[9]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[9] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[9] tanh(x)
  ROOT t = (s32[], f32[9]) tuple(next, y)
}
condition {
  s = (s32[], f32[9]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(500)
  ROOT c = pred[] compare(i, n), direction=LT
}
ENTRY e {
  z = s32[] constant(0)
  x = f32[9] parameter(0)
  s = (s32[], f32[9]) tuple(z, x)
  ROOT w = (s32[], f32[9]) while(s), condition=condition, body=body
}"""


def is_shaped(text: str) -> bool:
    """Whether the module of the program's own is compiled without the optimiser."""
    compilation = Compilation(heron.parse(text), get("cpu"), Options(), Trace())
    assert isinstance(compilation.machine, machine.CpuMachine)
    return compilation.machine.modules(compilation.lowered, "m")[-1][2].shaped


def test_which_modules() -> None:
    assert is_shaped(ELEMENTWISE % (30, 30, 30))
    assert not is_shaped(ELEMENTWISE % (30_000, 30_000, 30_000))
    assert not is_shaped(LOOP)  # it runs many times
    assert not is_shaped(SUM)  # its order of additions is LLVM's choice


@pytest.mark.parametrize("n", [1, 7, 64, 400])
def test_the_same_bits(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    module = heron.parse(ELEMENTWISE % (n, n, n))
    x = np.linspace(-3, 3, n, dtype=np.float32)
    quick = heron.compile(module)(x)
    monkeypatch.setattr(machine, "_TINY", 0.0)
    assert not is_shaped(ELEMENTWISE % (n, n, n))
    np.testing.assert_array_equal(heron.compile(module)(x), quick)
