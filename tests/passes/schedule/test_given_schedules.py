"""Passes on programs that came with a schedule: what they make has its place in the order, whatever they do."""

from __future__ import annotations

import pytest

from heron.errors import HeronError
from heron.hlo.text import parse, print_module
from heron.hlo.verifier import verify
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import all_passes, get

#: functions, a loop, a branch, a call, a fusion, reductions, an asynchronous pair: something for most passes
PROGRAM = """HloModule m, is_scheduled=true

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

fused {
  p = f32[64] parameter(0)
  q = f32[64] exponential(p)
  ROOT n = f32[64] negate(q)
}

condition {
  p = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  n = s32[] constant(3)
  ROOT c = pred[] compare(i, n), direction=LT
}

body {
  p = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  o = s32[] constant(1)
  j = s32[] add(i, o)
  x = f32[64] get-tuple-element(p), index=1
  y = f32[64] multiply(x, x)
  ROOT t = (s32[], f32[64]) tuple(j, y)
}

yes {
  p = f32[64] parameter(0)
  ROOT n = f32[64] negate(p)
}

no {
  ROOT p = f32[64] parameter(0)
}

double {
  p = f32[64] parameter(0)
  ROOT d = f32[64] add(p, p)
}

ENTRY e {
  x = f32[64] parameter(0)
  zero = f32[] constant(0)
  i = s32[] constant(0)
  f = f32[64] fusion(x), kind=kLoop, calls=fused
  z = f32[64] broadcast(zero), dimensions={}
  same = f32[64] add(f, z)
  r = f32[] reduce(same, zero), dimensions={0}, to_apply=add
  s = f32[] all-reduce-start(r), replica_groups={}, to_apply=add
  t = (s32[], f32[64]) tuple(i, same)
  w = (s32[], f32[64]) while(t), condition=condition, body=body
  g = f32[64] get-tuple-element(w), index=1
  e = f32[] all-reduce-done(s)
  big = pred[] compare(e, zero), direction=GT
  v = f32[64] conditional(big, g, x), true_computation=yes, false_computation=no
  c = f32[64] call(v), to_apply=double
  m = f32[8,8] reshape(c)
  d = f32[8,8] dot(m, m), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  l = f32[8,8] logistic(d)
  ROOT o = f32[64] reshape(l)
}
"""


@pytest.mark.parametrize("name", sorted(p.name for p in all_passes()))
def test_passes_keep_schedules_whole(name: str) -> None:
    module = parse(PROGRAM)
    before = print_module(module)
    ctx = PassContext()
    try:
        changed = ctx.run_pass(get(name), module)
    except HeronError:  # what the pass is for is not there
        return
    verify(module)
    if not changed:
        assert print_module(module) == before
    if module.schedule is not None:
        assert set(module.schedule) >= set(module.non_fusion_computations())


def test_what_was_in_order_stays_so() -> None:
    module = parse(PROGRAM)
    entry = module.entry
    before = [i.name for i in module.schedule[entry]]  # type: ignore[index]
    PassContext().run_pass(get("logistic-expander"), module)
    after = [i.name for i in module.schedule[entry] if i.name in before]  # type: ignore[index]
    assert after == [n for n in before if n in after] and len(after) >= len(before) - 2
