"""Loops on a GPU: neither counting nor testing takes a kernel of its own."""

from __future__ import annotations

import numpy as np

import heron
from heron.evaluator import evaluate
from heron.hlo.text import parse
from heron.runtime.thunks import KernelThunk, WhileThunk, walk

#: doubles x until n is 5, or until its sum is over 100
LOOP = """HloModule m
plus {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}
body {{
  s = (s32[], f32[64], f32[]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  x = f32[64] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(n, one)
  d = f32[64] add(x, x)
  zero = f32[] constant(0)
  sum = f32[] reduce(d, zero), dimensions={{0}}, to_apply=plus
  ROOT t = (s32[], f32[64], f32[]) tuple(next, d, sum)
}}
condition {{
  s = (s32[], f32[64], f32[]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  sum = f32[] get-tuple-element(s), index=2
  most = s32[] constant(5)
  large = f32[] constant(100)
  counts = pred[] compare(n, most), direction=LT
  small = pred[] compare(sum, large), direction=LT
  ROOT c = pred[] {condition}
}}
ENTRY e {{
  x = f32[64] parameter(0)
  zero = s32[] constant(0)
  none = f32[] constant(0)
  init = (s32[], f32[64], f32[]) tuple(zero, x, none)
  ROOT w = (s32[], f32[64], f32[]) while(init), condition=condition, body=body
}}
"""


def run(condition: str) -> tuple[WhileThunk, int]:
    """The loop, and how many kernels it has; its values are the evaluator's."""
    text = LOOP.format(condition=condition)
    x = np.full(64, 0.25, np.float32)
    found = heron.compile(parse(text), "sim:sm_90")
    for got, wanted in zip(found(x), evaluate(parse(text), x), strict=True):
        np.testing.assert_array_equal(got, wanted)
    loop = next(t for t in walk(found.sequence) if isinstance(t, WhileThunk))  # type: ignore[attr-defined]
    return loop, sum(isinstance(t, KernelThunk) for t in walk((loop,)))


def test_a_loop_of_known_length_is_counted() -> None:
    loop, kernels = run("compare(n, most), direction=LT")
    assert (loop.trips, loop.condition, kernels) == (5, (), 1)


def test_a_condition_on_values_is_computed_where_they_are() -> None:
    loop, kernels = run("and(counts, small)")
    assert (loop.trips, loop.condition, kernels) == (None, (), 1)
