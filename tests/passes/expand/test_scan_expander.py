"""scan-expander: every form of a scan has the evaluator's values as a loop or a window, on every target."""

from __future__ import annotations

import pytest

import heron
from heron.hlo.ir.module import Module
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import get
from tests.backends.agree import TARGETS, assert_agrees

FUNCTIONS = """
sum {
  x = f32[] parameter(0)
  c = f32[] parameter(1)
  s = f32[] add(x, c)
  ROOT r = (f32[], f32[]) tuple(s, s)
}
isum {
  x = s32[] parameter(0)
  c = s32[] parameter(1)
  s = s32[] add(x, c)
  ROOT r = (s32[], s32[]) tuple(s, s)
}
most {
  x = f32[3] parameter(0)
  c = f32[3] parameter(1)
  s = f32[3] maximum(x, c)
  ROOT r = (f32[3], f32[3]) tuple(s, s)
}
before {
  x = s32[] parameter(0)
  c = s32[] parameter(1)
  s = s32[] add(x, c)
  ROOT r = (s32[], s32[]) tuple(c, s)
}
two {
  x = f32[3] parameter(0)
  y = s32[2] parameter(1)
  c = f32[3] parameter(2)
  n = s32[] parameter(3)
  one = s32[] constant(1)
  m = s32[] add(n, one)
  t = f32[3] multiply(x, c)
  u = f32[3] add(t, x)
  ys = s32[2] broadcast(n), dimensions={}
  v = s32[2] subtract(y, ys)
  w = pred[3] compare(u, x), direction=GT
  ROOT r = (f32[3], s32[2], pred[3], f32[3], s32[]) tuple(u, v, w, t, m)
}
each {
  x = f32[] parameter(0)
  ROOT r = f32[] negate(x)
}
fold {
  x = f32[] parameter(0)
  c = f32[] parameter(1)
  ROOT r = f32[] subtract(c, x)
}
rows {
  x = f32[4] parameter(0)
  c = f32[] parameter(1)
  s = (f32[4], f32[]) scan(x, c), dimensions={0}, num_carries=1, to_apply=sum
  o = f32[4] get-tuple-element(s), index=0
  l = f32[] get-tuple-element(s), index=1
  ROOT r = (f32[4], f32[]) tuple(o, l)
}
pair {
  x = f32[] parameter(0)
  c = (f32[], s32[]) parameter(1)
  a = f32[] get-tuple-element(c), index=0
  k = s32[] get-tuple-element(c), index=1
  s = f32[] add(a, x)
  m = s32[] add(k, k)
  d = (f32[], s32[]) tuple(s, m)
  ROOT r = (f32[], (f32[], s32[])) tuple(s, d)
}
"""

#: what is scanned, and the entry computation's instructions
SCANS = {
    "running sum": ("f32[4] f32[]", "(f32[4], f32[]) scan(p0, p1), dimensions={0}, num_carries=1, to_apply=sum"),
    "associative": (
        "f32[70] f32[]",
        "(f32[70], f32[]) scan(p0, p1), dimensions={0}, num_carries=1, is_associative=true, to_apply=sum",
    ),
    "integers": ("s32[100] s32[]", "(s32[100], s32[]) scan(p0, p1), dimensions={0}, num_carries=1, to_apply=isum"),
    "reverse": (
        "s32[5] s32[]",
        "(s32[5], s32[]) scan(p0, p1), dimensions={0}, num_carries=1, is_reverse=true, to_apply=isum",
    ),
    "slices": ("f32[3,6] f32[3]", "(f32[3,6], f32[3]) scan(p0, p1), dimensions={1}, num_carries=1, to_apply=most"),
    "exclusive": ("s32[9] s32[]", "(s32[9], s32[]) scan(p0, p1), dimensions={0}, num_carries=1, to_apply=before"),
    "several": (
        "f32[3,7] s32[2,7] f32[3] s32[]",
        "(f32[3,7], s32[2,7], pred[3,7], f32[3], s32[]) scan(p0, p1, p2, p3), dimensions={1}, num_carries=2, to_apply=two",
    ),
    "no carry": ("f32[5]", "f32[5] scan(p0), dimensions={0}, num_carries=0, to_apply=each"),
    "no output": ("f32[5] f32[]", "f32[] scan(p0, p1), dimensions={0}, num_carries=1, to_apply=fold"),
    "a scan in a scan": (
        "f32[3,4] f32[]",
        "(f32[3,4], f32[]) scan(p0, p1), dimensions={0}, num_carries=1, is_reverse=true, to_apply=rows",
    ),
    "one element": ("f32[1] f32[]", "(f32[1], f32[]) scan(p0, p1), dimensions={0}, num_carries=1, to_apply=sum"),
    "nothing": ("f32[0] f32[]", "(f32[0], f32[]) scan(p0, p1), dimensions={0}, num_carries=1, to_apply=sum"),
    "no integers": ("s32[0] s32[]", "(s32[0], s32[]) scan(p0, p1), dimensions={0}, num_carries=1, to_apply=isum"),
}


def _module(name: str) -> Module:
    shapes, scan = SCANS[name]
    lines = [f"  p{n} = {s} parameter({n})" for n, s in enumerate(shapes.split())]
    return heron.parse("\n".join(["HloModule m", FUNCTIONS, "ENTRY main {", *lines, f"  ROOT r = {scan}", "}"]))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", SCANS)
def test_every_form_runs(name: str, target: str) -> None:
    assert_agrees(_module(name), target)


@pytest.mark.parametrize(("name", "op"), [
    ("running sum", "while"), ("associative", "reduce-window"), ("integers", "reduce-window"),
    ("slices", "reduce-window"), ("exclusive", "while"),
])  # fmt: skip
def test_the_order_of_roundings_is_kept_unless_it_is_free(name: str, op: str) -> None:
    module = _module(name)
    assert get("scan-expander").run(module, PassContext())
    opcodes = {i.opcode for i in module.entry.instructions}
    assert op in opcodes and "scan" not in opcodes


def test_a_tuple_is_carried() -> None:
    text = "\n".join([
        "HloModule m", FUNCTIONS, "ENTRY main {", "  x = f32[6] parameter(0)", "  a = f32[] parameter(1)",
        "  k = s32[] parameter(2)", "  c = (f32[], s32[]) tuple(a, k)",
        "  ROOT r = (f32[6], (f32[], s32[])) scan(x, c), dimensions={0}, num_carries=1, to_apply=pair", "}",
    ])  # fmt: skip
    assert_agrees(heron.parse(text), "cpu")
