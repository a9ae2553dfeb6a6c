"""transpose-folding: transposed operands and results against the evaluator."""

from __future__ import annotations

import numpy as np
import pytest

from heron.evaluator import evaluate
from heron.hlo.text import parse
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import get

RESULT = """HloModule m

ENTRY e {{
  x = f32[{x}] parameter(0)
  y = f32[{y}] parameter(1)
  d = f32[{d}] dot(x, y), {dims}
  t = f32[{t}] transpose(d), dimensions={{{p}}}
  ROOT r = f32[{t}] negate(t)
}}
"""


@pytest.mark.parametrize(
    ("x", "y", "d", "t", "p", "dims", "folds"),
    [
        ("3,4", "4,5", "3,5", "5,3", "1,0", "lhs_contracting_dims={1}, rhs_contracting_dims={0}", True),
        ("4,3", "5,4", "3,5", "5,3", "1,0", "lhs_contracting_dims={0}, rhs_contracting_dims={1}", True),
        (
            "2,3,4",
            "2,4,5",
            "2,3,5",
            "2,5,3",
            "0,2,1",
            "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}",
            True,
        ),
        (
            "2,3,4",
            "2,4,5",
            "2,3,5",
            "3,2,5",
            "1,0,2",
            "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}",
            False,
        ),
    ],
)
def test_result(x: str, y: str, d: str, t: str, p: str, dims: str, folds: bool) -> None:
    module = parse(RESULT.format(x=x, y=y, d=d, t=t, p=p, dims=dims), verify=True)
    generator = np.random.default_rng(1)
    inputs = [generator.standard_normal(q.shape.dims, np.float32) for q in module.entry.parameters]
    (before,) = evaluate(module, *inputs)
    assert get("transpose-folding").run(module, PassContext()) is folds
    assert any(i.opcode == "transpose" for i in module.entry.instructions) is not folds
    np.testing.assert_allclose(evaluate(module, *inputs)[0], before, rtol=1e-6)


def test_result_read_as_it_is() -> None:
    """A product that somebody reads untransposed stays."""
    text = RESULT.format(
        x="3,4", y="4,5", d="3,5", t="5,3", p="1,0", dims="lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    )
    text = text.replace("ROOT r = f32[5,3] negate(t)", "ROOT r = (f32[5,3], f32[3,5]) tuple(t, d)")
    assert not get("transpose-folding").run(parse(text, verify=True), PassContext())
