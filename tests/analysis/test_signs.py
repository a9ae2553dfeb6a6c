"""What is said never to be negative is not, for any input; what may be is not said to be."""

from __future__ import annotations

import numpy as np
import pytest

from heron.analysis.values.non_negative import never_negative
from heron.evaluator import Evaluator
from heron.hlo.text import parse
from heron.passes.framework.docs import expand_example

LESS = """less {
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT l = pred[] compare(p, q), direction=LT
}
"""
FIRST = """first {
  p = f32[] parameter(0)
  q = f32[] parameter(1)
  m = s32[] parameter(2)
  n = s32[] parameter(3)
  ROOT l = pred[] compare(p, q), direction=LT
}
"""
#: the last line is the value asked about
NEVER = {
    "exponential": "ROOT r = f32[4] exponential(f32[4] x)",
    "absolute": "ROOT r = f32[4] abs(f32[4] x)",
    "square": "ROOT r = f32[4] multiply(f32[4] x, x)",
    "root of a square": "m = f32[4] multiply(f32[4] x, x)\nROOT r = f32[4] sqrt(m)",
    "sum of two": "a = f32[4] abs(f32[4] x)\nb = f32[4] exponential(x)\nROOT r = f32[4] add(a, b)",
    "unsigned": "ROOT r = u8[4] convert(f32[4] x)",
    "widened": "n = u8[4] convert(f32[4] x)\nROOT r = s32[4] convert(n)",
    "chosen": "a = f32[4] abs(f32[4] x)\nc = pred[4] compare(x, a), direction=LT\n"
    "e = f32[4] exponential(x)\nROOT r = f32[4] select(c, a, e)",
    "integer above one": "n = s32[4] convert(f32[4] x)\none = s32[] constant(1)\n"
    "ones = s32[4] broadcast(one), dimensions={}\nROOT r = s32[4] maximum(n, ones)",
    "iota": "ROOT r = s8[128] iota(), iota_dimension=0",
    "sorted": LESS + "a = f32[4] abs(f32[4] x)\nROOT r = f32[4] sort(a), dimensions={0}, to_apply=less",
    "part of a sort": FIRST + "i = s32[4] iota(), iota_dimension=0\n"
    "s = (f32[4], s32[4]) sort(f32[4] x, i), dimensions={0}, to_apply=first\n"
    "ROOT r = s32[4] get-tuple-element(s), index=1",
    "joined": "a = f32[4] abs(f32[4] x)\nb = f32[4] exponential(x)\nROOT r = f32[8] concatenate(a, b), dimensions={0}",
    "padded": "a = f32[4] abs(f32[4] x)\nz = f32[] constant(1)\nROOT r = f32[6] pad(a, z), padding=1_1",
    "part of an array": "a = f32[4] abs(f32[4] x)\nn = s32[] constant(1)\n"
    "ROOT r = f32[2] dynamic-slice(a, n), dynamic_slice_sizes={2}",
}
PERHAPS = {
    "any": "ROOT r = f32[4] negate(f32[4] x)",
    "smallest integer": "n = s32[4] convert(f32[4] x)\nROOT r = s32[4] abs(n)",
    "wrapped square": "n = s32[4] convert(f32[4] x)\nROOT r = s32[4] multiply(n, n)",
    "narrowed": "n = u32[4] convert(f32[4] x)\nROOT r = s8[4] convert(n)",
    "minus zero": "z = f32[] constant(-0)\nROOT r = f32[4] broadcast(z), dimensions={}",
    "wrapped iota": "ROOT r = s8[200] iota(), iota_dimension=0",
    "part of a sort of any": FIRST + "i = s32[4] iota(), iota_dimension=0\n"
    "s = (f32[4], s32[4]) sort(f32[4] x, i), dimensions={0}, to_apply=first\n"
    "ROOT r = f32[4] get-tuple-element(s), index=0",
    "joined with any": "a = f32[4] abs(f32[4] x)\nROOT r = f32[8] concatenate(a, x), dimensions={0}",
    "one of two": "a = f32[4] abs(f32[4] x)\nROOT r = f32[4] maximum(a, x)",
}


@pytest.mark.parametrize("text", NEVER.values(), ids=NEVER)
def test_never(text: str) -> None:
    module = parse(expand_example(text, "ROOT r").before)
    assert never_negative(module.entry.root)
    inputs = [np.array(v, np.float32) for v in ([-0.0, 0.0, -1e-40, -5], [np.inf, -np.inf, np.nan, 3e38])]
    for x in inputs:
        value = np.asarray(Evaluator(module).run(*[x] * len(module.entry.parameters))).astype(np.float64)
        assert not np.signbit(value[~np.isnan(value)]).any()


@pytest.mark.parametrize("text", PERHAPS.values(), ids=PERHAPS)
def test_perhaps(text: str) -> None:
    assert not never_negative(parse(expand_example(text, "ROOT r").before).entry.root)
