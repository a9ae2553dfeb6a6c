from __future__ import annotations

import pytest

from heron.analysis.graph.dataflow import Dataflow
from heron.errors import HeronError
from heron.hlo.text import parse

LOOP = """HloModule m

body {
  p = (s32[], f32[4]{0}, f32[4]{0}) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[4]{0} get-tuple-element(p), index=1
  w = f32[4]{0} get-tuple-element(p), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = f32[4]{0} multiply(x, w)
  ROOT t = (s32[], f32[4]{0}, f32[4]{0}) tuple(j, y, w)
}

cond {
  p2 = (s32[], f32[4]{0}, f32[4]{0}) parameter(0)
  i2 = s32[] get-tuple-element(p2), index=0
  n = s32[] constant(3)
  ROOT lt = pred[] compare(i2, n), direction=LT
}

ENTRY main {
  a = f32[4]{0} parameter(0)
  b = f32[4]{0} parameter(1)
  zero = s32[] constant(0)
  init = (s32[], f32[4]{0}, f32[4]{0}) tuple(zero, a, b)
  loop = (s32[], f32[4]{0}, f32[4]{0}) while(init), condition=cond, body=body
  out = f32[4]{0} get-tuple-element(loop), index=1
  same = f32[4]{0} get-tuple-element(loop), index=2
  v = f32[2,2]{1,0} bitcast(out)
  ROOT r = (f32[2,2]{1,0}, f32[4]{0}) tuple(v, same)
}
"""


def test_state_the_body_changes_is_a_phi_and_the_rest_passes_through() -> None:
    module = parse(LOOP)
    flow = Dataflow(module)
    at = {i.name: i for i in module.instructions()}
    phi = flow.value(at["loop"], (1,))
    assert phi.kind == "phi" and flow.value(at["x"]) is phi and flow.value(at["out"]) is phi
    assert flow.value(at["v"]) is phi, "a bitcast is its operand"
    assert flow.value(at["same"]) is flow.value(at["b"]), "loop-invariant state is what came in"
    kinds = sorted((f.kind, f.target.name) for f in flow.flows)
    assert ("while-init", "loop{1}") in kinds and ("while-body", "loop{1}") in kinds
    assert not any(name == "loop{2}" for _, name in kinds)
    assert [v.shape.dims for v in flow.outputs] == [(2, 2), (4,)]


def test_swapped_state_is_found_by_iteration() -> None:
    text = LOOP.replace("tuple(j, y, w)", "tuple(j, w, x)")
    flow = Dataflow(parse(text))
    targets = {f.target.name for f in flow.flows if f.kind == "while-body"}
    assert targets == {"loop{0}", "loop{1}", "loop{2}"}


def test_parts_that_are_not_there() -> None:
    module = parse(LOOP)
    flow = Dataflow(module)
    loop = next(i for i in module.instructions() if i.name == "loop")
    for index in ((), (7,), (1, 0)):
        with pytest.raises(HeronError) as error:
            flow.value(loop, index)
        assert error.value.code == "BUF002"


def test_shared_computations_are_refused() -> None:
    text = """HloModule m

f {
  p = f32[] parameter(0)
  ROOT n = f32[] negate(p)
}

ENTRY main {
  x = f32[] parameter(0)
  a = f32[] call(x), to_apply=f
  ROOT b = f32[] call(a), to_apply=f
}
"""
    with pytest.raises(HeronError) as error:
        Dataflow(parse(text))
    assert error.value.code == "BUF001" and "f" in error.value.what


def test_conditional_results_are_phis_unless_all_branches_agree() -> None:
    text = """HloModule m

one {
  p = (f32[], f32[]) parameter(0)
  a = f32[] get-tuple-element(p), index=0
  b = f32[] get-tuple-element(p), index=1
  ROOT t = (f32[], f32[]) tuple(a, b)
}

two {
  q = (f32[], f32[]) parameter(0)
  c = f32[] get-tuple-element(q), index=0
  d = f32[] get-tuple-element(q), index=1
  n = f32[] negate(d)
  ROOT u = (f32[], f32[]) tuple(c, n)
}

ENTRY main {
  k = s32[] parameter(0)
  x = f32[] parameter(1)
  y = f32[] parameter(2)
  t0 = (f32[], f32[]) tuple(x, y)
  ROOT r = (f32[], f32[]) conditional(k, t0, t0), branch_computations={one, two}
}
"""
    module = parse(text)
    flow = Dataflow(module)
    root = module.entry.root
    assert flow.value(root, (0,)).name == "x" and flow.value(root, (1,)).kind == "phi"
    assert sum(f.kind == "branch" for f in flow.flows) == 2


def test_what_a_loop_carries_lies_as_the_loop_says() -> None:
    """A bitcast reads the initial value otherwise than it was written."""
    module = parse(
        """HloModule m
body { p = (s32[], f32[2,2]{0,1}) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  x = f32[2,2]{0,1} get-tuple-element(p), index=1
  one = s32[] constant(1)
  m = s32[] add(n, one)
  y = f32[2,2]{0,1} negate(x)
  ROOT t = (s32[], f32[2,2]{0,1}) tuple(m, y) }
condition { p = (s32[], f32[2,2]{0,1}) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  two = s32[] constant(2)
  ROOT c = pred[] compare(n, two), direction=LT }
ENTRY e { a = f32[2,2]{1,0} parameter(0)
  b = f32[2,2]{1,0} negate(a)
  c = f32[2,2]{0,1} bitcast(b)
  zero = s32[] constant(0)
  init = (s32[], f32[2,2]{0,1}) tuple(zero, c)
  ROOT w = (s32[], f32[2,2]{0,1}) while(init), condition=condition, body=body }"""
    )
    flow = Dataflow(module)
    carried = next(v for v in flow.values if v.kind == "phi" and v.index == (1,))
    assert carried.shape == module.entry.root.shape.at((1,))
