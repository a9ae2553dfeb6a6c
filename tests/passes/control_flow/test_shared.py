"""Several loops, branches and calls that run one computation, or equal ones, from the same values or from others.

What a pass knows about one of them, where its state starts or what is read of it, need not hold for the next one.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.hlo.text import parse
from heron.options import Options
from heron.passes.framework import registry
from heron.passes.framework.base import Pass
from heron.passes.framework.checks import random_inputs
from heron.passes.framework.context import PassContext
from tests.passes.alone import Subject
from tests.passes.control_flow.programs import program

#: the passes about loops, branches and calls, those to come included
PASSES = [c.name for c in registry.all_passes() if c.__module__.startswith("heron.passes.control_flow")]
FOLDERS = ("flatten-call-graph", "double-buffer-loop-unrolling", "copy-insertion", "tuple-simplifier", "cse")
SEEDS = st.integers(0, 100_000)


@pytest.mark.parametrize("name", [*PASSES, *FOLDERS])
@settings(max_examples=12)
@given(seed=SEEDS)
def test_one_pass(name: str, seed: int) -> None:
    _keeps_values([registry.get(name)], seed)


@settings(max_examples=40)
@given(seed=SEEDS)
def test_loops_made_simple(seed: int) -> None:
    """The pass that knows most about single loops, and those that give it more to know."""
    names = ("while-loop-constant-sinking", "while-loop-simplifier", "computation-deduplicator")
    _keeps_values([registry.get(name) for name in names * 2], seed)


@pytest.mark.parametrize("name", ["simplify", "cpu", "gpu"])
@settings(max_examples=6)
@given(seed=SEEDS)
def test_pipelines(name: str, seed: int) -> None:
    _keeps_values([registry.pipeline(name)], seed)


def _keeps_values(steps: Sequence[Pass], seed: int) -> None:
    module = program(seed, steps=10, shares=True)
    subject = Subject(module, [random_inputs(module, seed)])
    for step in steps:
        before = module.clone()
        outcome = subject.after(step, module, before)
        assert not outcome.problem or outcome.problem.startswith("a second run"), f"{outcome.problem}\n{before}"


def test_programs_share() -> None:
    """Most of the programs above run a computation from several places, and a good part of them are loops."""
    several = [[c for c in program(seed, 10, shares=True).callers().values() if len(c) > 1] for seed in range(40)]
    loops = [found for found in several if any(i.opcode == "while" for callers in found for i in callers)]
    assert len(loops) > 20


TWO_LOOPS = """
HloModule m

body {
  s = (s32[], s32[], s32[]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  next = s32[] add(n, one)
  a = s32[] get-tuple-element(s), index=1
  b = s32[] get-tuple-element(s), index=2
  NEW
  ROOT t = (s32[], s32[], s32[]) tuple(next, c, d)
}

condition {
  s = (s32[], s32[], s32[]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  four = s32[] constant(4)
  ROOT c = pred[] compare(n, four), direction=LT
}

ENTRY main {
  x = s32[] parameter(0)
  y = s32[] parameter(1)
  zero = s32[] constant(0)
  two = s32[] constant(2)
  seven = s32[] constant(7)
  i = (s32[], s32[], s32[]) tuple(zero, FIRST)
  v = (s32[], s32[], s32[]) while(i), condition=condition, body=body
  j = (s32[], s32[], s32[]) tuple(SECOND)
  w = (s32[], s32[], s32[]) while(j), condition=condition, body=body
  v1 = s32[] get-tuple-element(v), index=1
  v2 = s32[] get-tuple-element(v), index=2
  w1 = s32[] get-tuple-element(w), index=1
  w2 = s32[] get-tuple-element(w), index=2
  ROOT r = (s32[], s32[], s32[], s32[]) tuple(v1, v2, w1, w2)
}
"""


@pytest.mark.parametrize(
    ("new", "first", "second"),
    [
        # two elements are equal throughout the first loop
        ("c = s32[] multiply(a, a)  d = s32[] multiply(b, b)", "x, x", "zero, x, y"),
        # the second counter of the first loop follows from the first one
        ("c = s32[] add(a, one)  k = s32[] multiply(b, b)  d = s32[] add(k, a)", "two, x", "zero, seven, x"),
        # all rounds of the first loop are below 6
        (
            "six = s32[] constant(6)  small = pred[] compare(a, six), direction=LT  k = s32[] select(small, one, b) "
            "c = s32[] add(a, one)  d = s32[] add(k, b)",
            "two, x",
            "zero, seven, x",
        ),
    ],
    ids=["equal elements", "counters", "comparisons"],
)
def test_what_holds_for_one_loop_does_not_for_another(new: str, first: str, second: str) -> None:
    module = parse(TWO_LOOPS.replace("NEW", new).replace("FIRST", first).replace("SECOND", second))
    ctx = PassContext(Options(check="values"))
    assert ctx.run_pass(registry.get("while-loop-simplifier"), module)
