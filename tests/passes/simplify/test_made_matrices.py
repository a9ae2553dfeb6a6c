"""Products of a vector with a matrix that is made for them: on the CPU the matrix is never stored."""

from __future__ import annotations

import numpy as np
import pytest

from heron.compiling import compile
from heron.evaluator import evaluate
from heron.hlo.text import parse
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import get

OVER = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def program(body: str, t: str = "f32") -> str:
    return f"HloModule m\nENTRY e {{ a = {t}[90,70] parameter(0) v = {t}[70] parameter(1)\n {body} }}\n"


def batch(rows: int, row: int, t: str = "f32") -> str:
    """Small matrices, each times a vector of its own."""
    return (
        f"HloModule m\nENTRY e {{ a = {t}[50,{rows},{row}] parameter(0) v = {t}[50,{row}] parameter(1)\n "
        f"ROOT r = {t}[50,{rows}] dot(a, v), lhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_batch_dims={{0}}, "
        "rhs_contracting_dims={1} }\n"
    )


MADE = [
    program(f"m = f32[90,70] exponential(a) ROOT r = f32[90] dot(m, v), {OVER}"),
    program(f"m = f32[30,70] slice(a), slice={{[9:39],[0:70]}} ROOT r = f32[30] dot(m, v), {OVER}"),
    program("m = f32[90,70] negate(a) w = f32[90] sine(f32[90] parameter(2)) "
            "ROOT r = f32[70] dot(w, m), lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
    program(f"ROOT r = c64[90] dot(a, v), {OVER}", "c64"),
    batch(16, 16),
    batch(3, 9, "f64"),
]  # fmt: skip
STORED = [
    batch(16, 8),
    batch(17, 16),
    batch(3, 17),
    batch(8, 12, "s32"),
    "HloModule m\nENTRY e { a = f32[500,4,4] parameter(0) v = f32[500,4] parameter(1) m = f32[500,4,4] exponential(a) "
    "ROOT r = f32[500,4] dot(m, v), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, "
    "rhs_contracting_dims={1} }",
    program(f"ROOT r = f32[90] dot(a, v), {OVER}"),
    program(f"m = f32[90,70] exponential(a) d = f32[90] dot(m, v), {OVER} ROOT r = (f32[90], f32[90,70]) tuple(d, m)"),
    program(f"t = f32[90,70] sort(a), dimensions={{1}}, to_apply=less ROOT r = f32[90] dot(t, v), {OVER}").replace(
        "ENTRY",
        "less { x = f32[] parameter(0) y = f32[] parameter(1) ROOT l = pred[] compare(x, y), direction=LT }\nENTRY",
    ),
]


def rewritten(source: str) -> bool:
    module = parse(source)
    return get("dot-strength-reduction", made=True).run(module, PassContext())


@pytest.mark.parametrize("source", MADE)
def test_a_matrix_of_one_use_is_made_in_the_sum(source: str) -> None:
    assert rewritten(source)


@pytest.mark.parametrize("source", STORED)
def test_other_matrices_are_products(source: str) -> None:
    assert not rewritten(source)


@pytest.mark.parametrize("source", MADE)
def test_no_matrix_is_stored(source: str) -> None:
    module = parse(source)
    rng = np.random.default_rng(2)
    inputs = [rng.normal(size=p.shape.dims).astype(p.shape.element_type.dtype) for p in module.entry.parameters]
    exe = compile(module, "cpu")
    assert exe.memory.temp < 90 * 70 * 4
    (got,) = exe.run(inputs)
    assert np.allclose(got, evaluate(parse(source), *inputs), rtol=1e-5, atol=1e-4)
