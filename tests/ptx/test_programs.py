"""Whole programs: kernels run by their PTX behind the rehearsed driver, and rules that hold for every PTX text."""

from __future__ import annotations

import pytest

import heron
from heron.backends.gpu.compiled import CompiledGpu
from heron.options import Options
from tests.gpu.one import Run, check
from tests.gpu.reach import PROGRAMS
from tests.ptx.rules import broken
from tests.ptx.text import parse
from tests.rehearsal.compiling import compile, rehearsed
from tests.support import program

SCALED = """HloModule m

ENTRY main {
  x = f32[1024] parameter(0)
  y = f32[1024] parameter(1)
  p = f32[1024] multiply(x, y)
  d = f32[1024] divide(p, y)
  ROOT s = f32[1024] sqrt(d)
}
"""


@pytest.mark.parametrize("name", ["reductions", "gather_scatter", "cond_switch", "layernorm"])
def test_programs_by_their_ptx(name: str) -> None:
    with rehearsed(memory=1 << 30) as recorder:
        assert check(Run(name, small=True, graphs=True, prepared="", recorder=recorder, ptx=True)) == []


@pytest.mark.parametrize("name", ["scan", "histogram", "float_atomics"])
def test_kernels_that_wait_and_count_by_their_ptx(name: str) -> None:
    """Flags and tickets that blocks leave each other, atomics and lanes of a warp."""
    import numpy as np

    case = PROGRAMS[name]
    module, arrays = case.module(full=False), case.inputs(np.random.default_rng(0), case.sizes[0])
    wanted = heron.evaluate(module, *arrays)
    with rehearsed(memory=1 << 30) as recorder:
        got = compile(module, recorder, options=case.options, by_ptx=True).run(arrays)
    for g, w in zip(got, wanted, strict=True):
        np.testing.assert_allclose(g, w, rtol=case.rtol)


@pytest.mark.parametrize("name", ["math_zoo", "dtype_zoo", "sort_topk", "softmax", "threefry"])
def test_rules_of_programs(name: str) -> None:
    made = heron.compile(heron.parse(program(name, platform="cuda").read_text()), "sm_90", Options(triton="off"))
    assert isinstance(made, CompiledGpu)
    assert broken(parse(made.ptx)) == []


def test_what_breaks_rules_is_told() -> None:
    made = heron.compile(heron.parse(SCALED), "sm_90", Options(math="fast"))
    assert isinstance(made, CompiledGpu)
    found = broken(parse(made.ptx))
    assert any("sqrt.approx" in what for what in found) and any("denormals" in what for what in found)
