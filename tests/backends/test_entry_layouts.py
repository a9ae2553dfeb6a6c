"""Arrays of programs whose parameters and results are not row-major: callers see the same arrays in any layout."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.compiling import compile
from heron.evaluator import evaluate
from heron.hlo.ir.layout import layout
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape, tuple_
from heron.hlo.text import parse
from tests.backends.agreement import TARGETS, check
from tests.hlo.generate import Program, programs

TEXT = """
HloModule m, entry_computation_layout={(f32[2,3]{0,1}, (f32[4,2,3]{0,2,1}, (s32[5]{0}, f32[2,3]{0,1})))->(f32[2,3]{0,1}, f32[2,3]{0,1}, f32[3,2,4]{2,0,1}, f32[2,3]{1,0})}

ENTRY main {
  x = f32[2,3]{0,1} parameter(0)
  p = (f32[4,2,3]{0,2,1}, (s32[5]{0}, f32[2,3]{0,1})) parameter(1)
  a = f32[4,2,3]{0,2,1} get-tuple-element(p), index=0
  q = (s32[5]{0}, f32[2,3]{0,1}) get-tuple-element(p), index=1
  b = f32[2,3]{0,1} get-tuple-element(q), index=1
  y = f32[2,3]{0,1} negate(x)
  z = f32[2,3]{0,1} add(y, b)
  t = f32[3,2,4]{2,0,1} transpose(a), dimensions={2,1,0}
  bytes = f32[3,2]{1,0} bitcast(x)
  u = f32[2,3]{1,0} transpose(bytes), dimensions={1,0}
  ROOT r = (f32[2,3]{0,1}, f32[2,3]{0,1}, f32[3,2,4]{2,0,1}, f32[2,3]{1,0}) tuple(x, z, t, u)
}
"""


@pytest.mark.parametrize("target", TARGETS)
def test_tuples_bitcasts_and_orders(target: str) -> None:
    module = parse(TEXT, verify=True)
    random = np.random.default_rng(0)
    given_ = [random.normal(size=dims).astype(np.float32) for dims in ((2, 3), (4, 2, 3), (5,), (2, 3))]
    given_[2] = np.arange(5, dtype=np.int32)
    executable = compile(module, target)
    for arrays in (given_, [np.asfortranarray(a) for a in given_]):
        found = executable.run(arrays)
        for old, new in zip(evaluate(module, *arrays), found, strict=True):
            np.testing.assert_array_equal(old, new)
    assert executable.run(given_)[1].flags.f_contiguous  # as the program promises


LOOP = """HloModule m

more {
  p = (s32[], f32[16,64], f32[16,64]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  ten = s32[] constant(10)
  ROOT c = pred[] compare(n, ten), direction=LT
}

body {
  p = (s32[], f32[16,64], f32[16,64]) parameter(0)
  n = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  zero = s32[] constant(0)
  m = s32[] add(n, one)
  x = f32[16,64] get-tuple-element(p), index=1
  y = f32[16,64] sine(x)
  a = f32[16,64] get-tuple-element(p), index=2
  row = f32[1,64] dynamic-slice(y, n, zero), dynamic_slice_sizes={1,64}
  b = f32[16,64] dynamic-update-slice(a, row, n, zero)
  ROOT r = (s32[], f32[16,64], f32[16,64]) tuple(m, y, b)
}
left {
  q = f32[16,64] parameter(0)
  ROOT l = f32[16,64] cosine(q)
}
right {
  q = f32[16,64] parameter(0)
  ROOT l = f32[16,64] negate(q)
}

ENTRY main {
  x = f32[64,16] parameter(0)
  k = f32[64,16]{0,1} parameter(1)
  w = pred[] parameter(2)
  t = f32[16,64] transpose(x), dimensions={1,0}
  kt = f32[16,64] transpose(k), dimensions={1,0}
  zero = s32[] constant(0)
  s = (s32[], f32[16,64], f32[16,64]) tuple(zero, t, kt)
  wh = (s32[], f32[16,64], f32[16,64]) while(s), condition=more, body=body
  y = f32[16,64] get-tuple-element(wh), index=1
  z = f32[16,64] get-tuple-element(wh), index=2
  u = f32[64,16] transpose(y), dimensions={1,0}
  v = f32[64,16] transpose(z), dimensions={1,0}
  c = f32[16,64] conditional(w, t, kt), true_computation=left, false_computation=right
  ct = f32[64,16] transpose(c), dimensions={1,0}
  ROOT o = (f32[64,16], f32[64,16], f32[64,16]) tuple(u, v, ct)
}
"""


@pytest.mark.parametrize("target", TARGETS)
def test_loops_and_branches_hold_what_is_not_row_major(target: str) -> None:
    module = parse(LOOP, verify=True)
    random = np.random.default_rng(0)
    arrays = [random.normal(size=(64, 16)).astype(np.float32) for _ in range(2)]
    executable = compile(module, target)
    loop = next(line for line in executable.stage("scheduled").splitlines() if " while(" in line)
    assert "f32[16,64]{0,1}" in loop  # the transpose before it and the one behind it are gone
    for which in (False, True):
        found = executable.run([*arrays, np.bool_(which)])
        for old, new in zip(evaluate(module, *arrays, np.bool_(which)), found, strict=True):
            np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-6)


@settings(max_examples=15)
@given(programs(max_ops=6), st.randoms(use_true_random=False))
def test_any_program(program: Program, random: object) -> None:
    module = program.module.clone()
    _relay(module, random)
    check(Program(module, program.inputs, program.errors), ["cpu"], buffers=True, passes=True)


def _relay(module: Module, random: object) -> None:
    """Give the entry's arrays layouts of their own."""

    def relaid(shape: Shape) -> Shape:
        if shape.tuple_shapes is not None:
            return tuple_([relaid(s) for s in shape.tuple_shapes])
        order = list(range(shape.rank))
        random.shuffle(order)  # type: ignore[attr-defined]
        return shape.with_layout(layout(tuple(order)))

    module.entry_layout = tuple(map(relaid, module.parameter_shapes)), relaid(module.result_shape)
