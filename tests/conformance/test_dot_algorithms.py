"""Algorithms that round the operands of a product: who does it is written in docs/reference/conformance.md."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import heron
from tests.xla_cpu import run as xla

TEXT = """HloModule m
ENTRY e {{ p = f32[8,16] parameter(0)
  q = f32[16,8] parameter(1)
  ROOT d = f32[8,8] dot(p, q), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, algorithm={algorithm} }}"""
ROUNDED = {"dot_bf16_bf16_f32": ml_dtypes.bfloat16, "dot_f16_f16_f32": np.float16}


def _inputs() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(s).astype(np.float32) for s in ((8, 16), (16, 8))]


@pytest.mark.parametrize("algorithm", ROUNDED)
@pytest.mark.parametrize("where, rounds", [("evaluator", True), ("sim:sm_90", True), ("cpu", False), ("xla", False)])
def test_operands_are_rounded_where_it_is_written(algorithm: str, where: str, rounds: bool) -> None:
    text, (p, q) = TEXT.format(algorithm=algorithm), _inputs()
    module = heron.parse(text)
    if where == "xla":
        (found,) = xla(text, p, q)
    elif where == "evaluator":
        (found,) = heron.evaluate(module, p, q)
    else:
        found = heron.compile(module, where)(p, q)
    if rounds:
        p, q = (a.astype(ROUNDED[algorithm]) for a in (p, q))
    np.testing.assert_allclose(found, p.astype(np.float64) @ q.astype(np.float64), atol=3e-6)
