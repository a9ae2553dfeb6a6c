"""dot-algorithm-rewriter: the same bits, and what is left as it is."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from heron.evaluator import evaluate
from heron.hlo.ir.module import Module
from heron.hlo.text import parse
from heron.options import Options
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import get

DTYPES = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "f16": np.float16}


def program(a: str, b: str, algorithm: str, result: str = "f32") -> Module:
    return parse(f"""HloModule m

ENTRY main {{
  x = {a}[4,8] parameter(0)
  w = {b}[8,6] parameter(1)
  ROOT d = {result}[4,6] dot(x, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, algorithm={algorithm}
}}
""")


def changed(module: Module) -> bool:
    return PassContext(Options()).run_pass(get("dot-algorithm-rewriter"), module)


@pytest.mark.parametrize(("a", "b"), [("f32", "f32"), ("f32", "narrow"), ("narrow", "f32"), ("narrow", "narrow")])
@pytest.mark.parametrize("t", ["bf16", "f16"])
def test_values_stay(a: str, b: str, t: str) -> None:
    a, b = (x.replace("narrow", t) for x in (a, b))
    module = program(a, b, f"dot_{t}_{t}_f32")
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(s).astype(DTYPES[x]) for s, x in (((4, 8), a), ((8, 6), b))]
    wanted = evaluate(module, *inputs)
    assert changed(module)
    (dot,) = (i for i in module.entry.instructions if i.opcode == "dot")
    assert not dot.attrs.get("algorithm") and {o.shape.element_type.name for o in dot.operands} == {t}
    np.testing.assert_array_equal(evaluate(module, *inputs), wanted)


@pytest.mark.parametrize(
    ("a", "b", "algorithm", "result"),
    [
        ("f64", "f64", "dot_bf16_bf16_f32", "f64"),
        ("f32", "f32", "dot_tf32_tf32_f32", "f32"),
        ("f32", "f32", "dot_bf16_bf16_f32_x3", "f32"),
        ("bf16", "bf16", "dot_bf16_bf16_f32", "bf16"),
    ],
)
def test_what_stays(a: str, b: str, algorithm: str, result: str) -> None:
    assert not changed(program(a, b, algorithm, result))
