"""Reductions of one array to a tuple: every form is right on each target."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from tests.passes.expand.test_expanders import assert_same_values, inputs_of, module_of

_FUNCTIONS = """
add { a = f32[] parameter(0)  b = f32[] parameter(1)  s = f32[] add(a, b)  ROOT t = (f32[]) tuple(s) }
pair { a = f32[] parameter(0)  b = f32[] parameter(1)  m = f32[] maximum(a, b)  ROOT t = (f32[]) tuple(m) }
called { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = (f32[]) call(a, b), to_apply=pair }
last { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT t = (f32[]) tuple(b) }
fused { p = f32[6,5] parameter(0)  z = f32[] constant(0)  ROOT r = (f32[5]) reduce(p, z), dimensions={0}, to_apply=add }
"""
_BODIES = [
    "ROOT r = (f32[6]) reduce(p, z), dimensions={1}, to_apply=add",
    "r = (f32[6]) reduce(p, z), dimensions={1}, to_apply=called; ROOT g = f32[6] get-tuple-element(r), index=0",
    "ROOT r = (f32[]) reduce(p, z), dimensions={0,1}, to_apply=pair",
    "ROOT r = (f32[6,5]) reduce-window(p, z), window={size=1x5 pad=0_0x4_0}, to_apply=add",
    "ROOT r = (f32[6,5]) reduce-window(p, z), window={size=1x1}, to_apply=last",
    "r = (f32[6]) reduce(p, z), dimensions={1}, to_apply=pair; ROOT t = ((f32[6]), f32[6,5]) tuple(r, p)",
]


@pytest.mark.parametrize("body", _BODIES)
def test_values_stay(body: str) -> None:
    module = module_of(f"p = f32[6,5] parameter(0); z = f32[] constant(0); {body}", _FUNCTIONS)
    assert_same_values("reduction-untupler", module, inputs_of(module, False), exact="=add" not in body)


@pytest.mark.parametrize("target", ["cpu", "sim:sm_90"])
@pytest.mark.parametrize("body", [*_BODIES, "ROOT f = (f32[5]) fusion(p), kind=kInput, calls=fused"])
def test_compiled(body: str, target: str) -> None:
    module = module_of(f"p = f32[6,5] parameter(0); z = f32[] constant(0); {body}", _FUNCTIONS)
    inputs = inputs_of(module, False)
    wanted = heron.evaluate(module, *inputs)
    for old, new in zip(wanted, heron.compile(module, target).run(inputs), strict=True):
        np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-6)
