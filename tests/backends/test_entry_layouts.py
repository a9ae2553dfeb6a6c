"""Arrays of programs whose parameters and results are not row-major: callers see the same arrays in any layout."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.backends import compile
from heron.hlo.evaluator import evaluate
from heron.hlo.layout import layout
from heron.hlo.module import Module
from heron.hlo.shape import Shape, tuple_
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
