"""The bytes of values over a computation's order, as they are followed and as they are counted anew."""

from __future__ import annotations

import pytest

from heron.analysis.sharding.improve import Search
from heron.analysis.sharding.memory import Timeline
from heron.analysis.sharding.parameters import choose_parameters
from heron.analysis.sharding.program import ProgramShardings
from heron.hlo.sharding.atoms import AtomicMesh
from heron.hlo.sharding.mesh import Mesh
from heron.hlo.text import parse
from tests.passes.sharding.cases import FAMILIES, case
from tests.passes.sharding.test_auto_sharding import GATED

UPDATES = """HloModule m
ENTRY e {
  x = f32[4] parameter(0)
  u = f32[1] parameter(1)
  n = s32[] constant(0)
  a = f32[4] negate(x)
  b = f32[4] dynamic-update-slice(a, u, n)
  c = f32[4] dynamic-update-slice(b, u, n)
  d = f32[4] dynamic-update-slice(x, u, n)
  ROOT r = (f32[4], f32[4]) tuple(c, d)
}
"""


def test_updates_take_their_operands_memory():
    entry = parse(UPDATES).entry
    values = {i.name: i for i in entry.instructions}
    line = Timeline(entry.post_order())
    line.fill({values[n]: 16.0 for n in "abcd"})
    # the chain a, b, c is one array; a parameter stays as it is
    assert line.peak == 32
    line.put(values["a"], 20.0)
    line.need(values["r"], 5.0)
    assert line.peak == 41
    line.fill({values[n]: 16.0 for n in "bcd"})
    # from nothing the first update makes the array
    assert line.peak == 32 + 5


@pytest.mark.parametrize("name", ["gated", *sorted(set(FAMILIES) - {"scatter"})])
def test_followed_as_counted(name: str):
    for seed in range(3):
        module = parse(GATED if name == "gated" else case(seed, [name])[1])
        search = Search(module.entry, ProgramShardings.read(module))
        if not search.moved:
            continue
        search.run()
        assert search.held.line.peak == search.peak == search.held.fill()


CALLS = """HloModule m
step {
  x = f32[64,64] parameter(0)
  w = f32[64,64] parameter(1)
  ROOT y = f32[64,64] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
body {
  p = (s32[], f32[64,64], f32[64,64]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  x = f32[64,64] get-tuple-element(p), index=1
  w = f32[64,64] get-tuple-element(p), index=2
  one = s32[] constant(1)
  m = s32[] add(n, one)
  y = f32[64,64] call(x, w), to_apply=step
  ROOT t = (s32[], f32[64,64], f32[64,64]) tuple(m, y, w)
}
condition {
  p = (s32[], f32[64,64], f32[64,64]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  most = s32[] constant(ROUNDS)
  ROOT less = pred[] compare(n, most), direction=LT
}
ENTRY e {
  x = f32[64,64] parameter(0)
  w = f32[64,64] parameter(1)
  zero = s32[] constant(0)
  t = (s32[], f32[64,64], f32[64,64]) tuple(zero, x, w)
  l = (s32[], f32[64,64], f32[64,64]) while(t), condition=condition, body=body
  ROOT r = f32[64,64] get-tuple-element(l), index=1
}
"""


def test_what_a_loop_calls_counts_once_a_round():
    shardings = ProgramShardings(AtomicMesh.of(Mesh((("x", 2),))))
    one, ten = (choose_parameters(parse(CALLS.replace("ROUNDS", n)), shardings) for n in ("1", "10"))
    assert ten.before.cost == pytest.approx(10 * one.before.cost, rel=0.01)
    # parameters, what the loop carries, and the product of a round
    assert one.before.memory >= 5 * 64 * 64 * 4
