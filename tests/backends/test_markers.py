"""Custom calls that only say where a value is kept or how it is spread: no machine needs code for them."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron.backends.compiler import Compilation
from heron.compiling import compile
from heron.hlo.calls.markers import MARKERS
from heron.options import Options
from heron.targets import get
from heron.trace import Trace

#: JAX's `device_put` into the host's memory and back, around a loop whose state waits there
OFFLOADED = """
HloModule m, entry_computation_layout={(f32[4]{0})->(f32[4]{0:S(5)}, f32[4]{0})}

body {
  p = (s32[], f32[4]{0:S(5)}) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  x = f32[4]{0:S(5)} get-tuple-element(p), index=1
  one = s32[] constant(1)
  m = s32[] add(n, one)
  d = f32[4] custom-call(x), custom_call_target="MoveToDevice"
  t = f32[4] tanh(d)
  h = f32[4]{0:S(5)} custom-call(t), custom_call_target="MoveToHost"
  ROOT r = (s32[], f32[4]{0:S(5)}) tuple(m, h)
}

cond {
  p = (s32[], f32[4]{0:S(5)}) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  three = s32[] constant(3)
  ROOT c = pred[] compare(n, three), direction=LT
}

ENTRY main {
  x = f32[4] parameter(0)
  y = f32[4]{0:S(5)} custom-call(x), custom_call_target="annotate_device_placement", custom_call_has_side_effect=true
  zero = s32[] constant(0)
  s = (s32[], f32[4]{0:S(5)}) tuple(zero, y)
  w = (s32[], f32[4]{0:S(5)}) while(s), condition=cond, body=body
  h = f32[4]{0:S(5)} get-tuple-element(w), index=1
  b = f32[4] custom-call(h), custom_call_target="annotate_device_placement", custom_call_has_side_effect=true
  q = f32[4] custom-call(b), custom_call_target="Sharding", sharding={replicated}
  g = f32[4] negate(q)
  ROOT t = (f32[4]{0:S(5)}, f32[4]) tuple(h, g)
}
"""


@pytest.mark.parametrize("target", ["cpu", "sm_90"])
@pytest.mark.parametrize("marker", sorted(MARKERS))
def test_every_marker_goes_with_its_reason(marker: str, target: str) -> None:
    text = f"""
HloModule m

ENTRY main {{
  x = f32[4] parameter(0)
  y = f32[4] custom-call(x), custom_call_target="{marker}"
  ROOT r = f32[4] negate(y)
}}
"""
    if marker == "MoveToHost" and target != "cpu":
        pytest.skip("an array in the host's memory is one: tests/passes/copies/test_host_offloader.py")
    trace = Trace()
    module = Compilation(heron.parse(text), get(target), Options(), trace).passes("hlo")
    assert "custom-call" not in {i.opcode for i in module.instructions()}
    (told,) = [d for d in trace.decisions if d.rule == "marker-remover"]
    assert told.reason == f"{marker} changes no value: {MARKERS[marker]}"


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
def test_what_was_to_wait_on_the_host(target: str) -> None:
    x = np.linspace(-1, 1, 4, dtype=np.float32)
    h, g = compile(heron.parse(OFFLOADED), target).run([x])
    wanted = np.tanh(np.tanh(np.tanh(x)))
    np.testing.assert_allclose(h, wanted, rtol=1e-6)
    np.testing.assert_array_equal(g, -h)


@pytest.mark.parametrize("effect", ["", ", custom_call_has_side_effect=true"])
@pytest.mark.parametrize("target", ["evaluator", "cpu", "sim:sm_90"])
def test_an_array_that_nobody_has_written(target: str, effect: str) -> None:
    """XLA prints it for what a loop fills."""
    module = heron.parse(f"""HloModule m
ENTRY main {{
  x = f32[1,3] parameter(0)
  b = f32[2,3] custom-call(), custom_call_target="AllocateBuffer"{effect}
  zero = s32[] constant(0)
  one = s32[] constant(1)
  u = f32[2,3] dynamic-update-slice(b, x, zero, zero)
  ROOT v = f32[2,3] dynamic-update-slice(u, x, one, zero)
}}""")
    x = np.array([[1, 2, 3]], np.float32)
    found = heron.evaluate(module, x)[0] if target == "evaluator" else heron.compile(module, target=target)(x)
    np.testing.assert_array_equal(np.asarray(found), [[1, 2, 3], [1, 2, 3]])
