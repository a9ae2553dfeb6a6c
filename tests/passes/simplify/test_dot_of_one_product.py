"""A dot that sums nothing is a multiplication, whatever its types are."""

from __future__ import annotations

import numpy as np
import pytest

from heron.evaluator import evaluate
from heron.hlo import text
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import get
from tests.backends.agree import assert_agrees

TEXT = """HloModule m
ENTRY e {{
  x = {0}[50,3,1] parameter(0)
  y = {1}[50,1,7] parameter(1)
  ROOT d = {2}[50,3,7] dot(x, y), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}
}}
"""  # noqa: E501


@pytest.mark.parametrize(
    ("lhs", "rhs", "out", "rewritten"),
    [
        ("f32", "f32", "f32", True),
        ("bf16", "bf16", "f32", True),
        ("bf16", "f16", "bf16", True),
        ("f32", "bf16", "f64", True),
        ("s8", "s8", "s32", True),
        ("u8", "s8", "s16", True),
        ("s32", "s8", "s8", False),
        ("f32", "f32", "s32", False),
    ],
)
def test_types(lhs: str, rhs: str, out: str, rewritten: bool) -> None:
    module = text.parse(TEXT.format(lhs, rhs, out))
    rng = np.random.default_rng(2)
    given = [rng.integers(0, 100, p.shape.dims).astype(p.shape.element_type.dtype) for p in module.entry.parameters]
    if rhs == "f16":
        given[1] = (given[1] / 7).astype(given[1].dtype)
    (before,) = evaluate(module, *given)
    get("algebraic-simplifier").run(module, PassContext())
    assert any(i.opcode == "dot" for i in module.entry.instructions) != rewritten
    (after,) = evaluate(module, *given)
    np.testing.assert_array_equal(np.asarray(before, np.float64), np.asarray(after, np.float64))
    assert_agrees(text.parse(TEXT.format(lhs, rhs, out)), "cpu")
