"""All three ops, at several feature dimensions and types, against the evaluator."""

from __future__ import annotations

import pytest

from heron.hlo.text import parse
from heron.hlo.verifier import verify
from heron.options import Options
from heron.passes.framework import registry
from heron.passes.framework.context import PassContext

TRAINING = """
  x = T[3,4,5] parameter(0)
  s = T[N] parameter(1)
  o = T[N] parameter(2)
  ROOT r = (T[3,4,5], T[N], T[N]) batch-norm-training(x, s, o), epsilon=0.01, feature_index=F
"""
GRAD = """
  x = T[3,4,5] parameter(0)
  s = T[N] parameter(1)
  m = T[N] parameter(2)
  p = T[N] parameter(3)
  v = T[N] multiply(p, p)
  g = T[3,4,5] parameter(4)
  ROOT r = (T[3,4,5], T[N], T[N]) batch-norm-grad(x, s, m, v, g), epsilon=0.01, feature_index=F
"""


@pytest.mark.parametrize("body", [TRAINING, GRAD], ids=["training", "grad"])
@pytest.mark.parametrize("feature", [0, 1, 2])
@pytest.mark.parametrize("element_type", ["f32", "f64", "bf16"])
def test_values(body: str, feature: int, element_type: str) -> None:
    size = str((3, 4, 5)[feature])
    text = body.replace("T[", f"{element_type}[").replace("[N]", f"[{size}]").replace("=F", f"={feature}")
    module = parse("HloModule m\n\nENTRY main {\n" + text + "}\n")
    assert PassContext(Options(check="values")).run_pass(registry.get("batchnorm-expander"), module)
    verify(module)
    assert not any(i.opcode.startswith("batch-norm") for i in module.instructions())
