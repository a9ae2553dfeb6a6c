"""Sums of narrow floats that a loop adds to wider ones: exchanged once, behind the loop, in the wide type."""

from __future__ import annotations

import numpy as np
import pytest

from heron.evaluator import evaluate_devices
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import get

LOOP = """
HloModule m, num_partitions=2
add {{ a = {narrow}[] parameter(0) b = {narrow}[] parameter(1) ROOT s = {narrow}[] add(a, b) }}
body {{
  s = (s32[], {narrow}[4], {wide}[4]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  x = {narrow}[4] get-tuple-element(s), index=1
  total = {wide}[4] get-tuple-element(s), index=2
  one = s32[] constant(1)
  m = s32[] add(n, one)
  y = {narrow}[4] add(x, x)
  r = {narrow}[4] all-reduce(x), channel_id=1, use_global_device_ids=true, replica_groups={{{{0,1}}}}, to_apply=add
  w = {wide}[4] convert(r)
  t = {wide}[4] add(total, w)
  ROOT o = (s32[], {narrow}[4], {wide}[4]) tuple(m, y, t)
}}
condition {{
  s = (s32[], {narrow}[4], {wide}[4]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  bound = s32[] constant({rounds})
  ROOT c = pred[] compare(n, bound), direction=LT
}}
ENTRY e {{
  x = {narrow}[4] parameter(0)
  total = {wide}[4] parameter(1)
  start = s32[] constant(0)
  i = (s32[], {narrow}[4], {wide}[4]) tuple(start, x, total)
  l = (s32[], {narrow}[4], {wide}[4]) while(i), condition=condition, body=body
  ROOT r = {wide}[4] get-tuple-element(l), index=2
}}
"""


def moved(narrow: str, wide: str, rounds: int) -> tuple[Module, Module, bool]:
    """The module before and after the pass, and whether it changed."""
    before = parse(LOOP.format(narrow=narrow, wide=wide, rounds=rounds))
    after = before.clone()
    changed = PassContext().run_pass(get("while-loop-all-reduce-code-motion"), after)
    verify(after)
    return before, after, changed


@pytest.mark.parametrize(("narrow", "wide"), [("bf16", "f32"), ("f16", "f32"), ("f32", "f64")])
def test_one_sum_behind_the_loop(narrow: str, wide: str) -> None:
    before, after, changed = moved(narrow, wide, 3)
    assert changed
    (reduced,) = (i for i in after.instructions() if i.opcode == "all-reduce")
    assert reduced.parent is after.entry and reduced.shape.element_type.name == wide
    shapes = [p.shape for p in before.entry.parameters]
    inputs = [[np.arange(4).astype(s.element_type.dtype) * (d + 1) for s in shapes] for d in range(2)]
    for want, got in zip(evaluate_devices(before, inputs), evaluate_devices(after, inputs), strict=True):
        np.testing.assert_array_equal(got[0], want[0])


@pytest.mark.parametrize(
    ("narrow", "wide", "rounds"), [("bf16", "f32", 1), ("bf16", "f16", 3), ("s8", "s32", 3), ("f32", "bf16", 3)]
)
def test_sums_that_would_send_more_or_are_others_stay(narrow: str, wide: str, rounds: int) -> None:
    """Integers wrap around in the narrow type; a float that does not hold all narrow ones rounds them."""
    assert not moved(narrow, wide, rounds)[2]
