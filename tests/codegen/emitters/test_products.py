"""Dots without a library: kernels that reduce, against the evaluator."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from heron import targets
from heron.codegen.emit import emit_fusion
from tests.codegen.run_kernel import check, root_fusion

RNG = np.random.default_rng(5)


def program(t: str, lhs: str, rhs: str, out: str, dims: str) -> str:
    return (
        f"HloModule m\nENTRY e {{ a = {t}[{lhs}] parameter(0) b = {t}[{rhs}] parameter(1)\n"
        f" ROOT r = {out} dot(a, b), {dims} }}"
    )


PLAIN = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
FORMS = [
    ("5,100", "100,70", "5,70", PLAIN, "columns"),
    ("5,100", "70,100", "5,70", "lhs_contracting_dims={1}, rhs_contracting_dims={1}", "rows"),
    ("100,5", "100,70", "5,70", "lhs_contracting_dims={0}, rhs_contracting_dims={0}", "columns"),
    ("5,100", "100", "5", PLAIN, "rows"),
    (
        "3,5,80", "3,80,9", "3,5,9",
        "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}", "columns",
    ),
    ("6,20", "20,31", "6,31", PLAIN, "columns"),
    ("4,10,8", "8,10,6", "4,6", "lhs_contracting_dims={1,2}, rhs_contracting_dims={1,0}", "columns in registers"),
]  # fmt: skip


@pytest.mark.parametrize(("lhs", "rhs", "out", "dims", "form"), FORMS)
def test_forms(lhs: str, rhs: str, out: str, dims: str, form: str) -> None:
    text = program("s8", lhs, rhs, f"s32[{out}]", dims)
    inputs = [RNG.integers(-128, 128, [int(n) for n in s.split(",")]).astype(np.int8) for s in (lhs, rhs)]
    check(text, inputs, parts=2)
    kernel = emit_fusion(root_fusion(text), "k", targets.get("cpu"))
    assert kernel.emitter == "reduce" and all(word in kernel.notes["form"] for word in form.split())


@pytest.mark.parametrize("t", ["bf16", "f16", "f64", "s16", "c64"])
def test_types(t: str) -> None:
    dtype = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f64": np.float64, "s16": np.int16, "c64": np.complex64}[t]
    inputs = [RNG.integers(-4, 4, shape).astype(dtype) for shape in ((6, 96), (96, 20))]
    check(program(t, "6,96", "96,20", f"{t}[6,20]", PLAIN), inputs, rtol=1e-6)


@pytest.mark.parametrize(
    ("lhs", "rhs", "dims"),
    [((5, 7), (7, 6), PLAIN), ((5, 60), (6, 60), "lhs_contracting_dims={1}, rhs_contracting_dims={1}")],
)
def test_a_short_sum_is_a_loop(lhs: tuple[int, int], rhs: tuple[int, int], dims: str) -> None:
    """Up to a longer one where both operands lie along it: their elements are read side by side."""
    text = program("s8", ",".join(map(str, lhs)), ",".join(map(str, rhs)), "s32[5,6]", dims)
    assert emit_fusion(root_fusion(text), "k", targets.get("cpu")).emitter == "loop"
    check(text, [RNG.integers(-9, 9, s).astype(np.int8) for s in (lhs, rhs)])
