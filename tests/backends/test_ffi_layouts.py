"""Handlers that are registered for calls which heron computes itself, as JAX registers LAPACK's."""

from __future__ import annotations

import numpy as np
import pytest

import heron
from heron.compiling import compile
from heron.evaluator import evaluate
from heron.runtime.host import ffi as handlers

TRIDIAGONAL = """HloModule m, entry_computation_layout={(f64[5]{0}, f64[5]{0}, f64[5]{0}, f64[5,3]{1,0})->f64[5,3]{1,0}}
ENTRY e {
  a = f64[5] parameter(0)
  b = f64[5] parameter(1)
  c = f64[5] parameter(2)
  d = f64[5,3] parameter(3)
  s = (f64[5], f64[5], f64[5], f64[5,3]{0,1}, s32[]) custom-call(a, b, c, d), custom_call_target="lapack_dgtsv_ffi", operand_layout_constraints={f64[5]{0}, f64[5]{0}, f64[5]{0}, f64[5,3]{0,1}}, output_to_operand_aliasing={{0}: (0, {}), {1}: (1, {}), {2}: (2, {}), {3}: (3, {})}, api_version=API_VERSION_TYPED_FFI
  ROOT x = f64[5,3] get-tuple-element(s), index=3
}
"""


def test_a_call_that_takes_any_order_does_not_go_to_a_handler_that_wants_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether JAX registered one in this process makes no difference."""
    inputs = [np.linspace(0, 1, 5), np.full(5, 4.0), np.linspace(1, 0, 5), np.arange(15.0).reshape(5, 3)]
    inputs[0][0] = inputs[2][-1] = 0
    wanted = evaluate(heron.parse(TRIDIAGONAL), *inputs)[0]
    monkeypatch.setattr(handlers, "find", lambda name: 1)
    np.testing.assert_allclose(compile(heron.parse(TRIDIAGONAL), "sim:sm_90").run(inputs)[0], wanted, rtol=1e-12)
