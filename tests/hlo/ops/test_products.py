"""dot and convolution in their variants, against XLA:CPU; ragged and scaled dots against plain ones."""

from __future__ import annotations

import numpy as np
import pytest

from heron.hlo.evaluator import evaluate
from heron.hlo.text import parse
from tests.hlo.ops.agree import check, inputs, program

TYPES = [
    ("f32", "f32"),
    ("f64", "f64"),
    ("bf16", "bf16"),
    ("bf16", "f32"),
    ("f16", "f16"),
    ("f8e4m3fn", "f32"),
    ("c64", "c64"),
    ("pred", "pred"),
    ("s4", "s32"),
    ("s8", "s32"),
    ("s8", "s8"),
    ("u8", "u32"),
    ("s32", "s32"),
    ("s64", "s64"),
    ("u64", "u64"),
]


@pytest.mark.parametrize(("operand", "result"), TYPES)
def test_dot_types(operand: str, result: str) -> None:
    check(
        program(
            f" p = {operand}[2,3,4] parameter(0)\n q = {operand}[4,2,5] parameter(1)\n"
            f" ROOT r = {result}[2,3,5] dot(p, q), lhs_batch_dims={{0}}, lhs_contracting_dims={{2}},"
            " rhs_batch_dims={1}, rhs_contracting_dims={0}"
        )
    )


def test_dot_of_two_types() -> None:
    body = " p = s8[3,4] parameter(0)\n q = bf16[4,5] parameter(1)\n"
    check(program(body + " ROOT r = bf16[3,5] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}"))


def test_dot_without_and_with_all_dimensions_contracted() -> None:
    body = " p = f32[3,4] parameter(0)\n q = f32[3,4] parameter(1)\n"
    check(program(body + " ROOT r = f32[3,4,3,4] dot(p, q), lhs_contracting_dims={}, rhs_contracting_dims={}"))
    check(program(body + " ROOT r = f32[] dot(p, q), lhs_contracting_dims={1,0}, rhs_contracting_dims={1,0}"))


CONVOLUTIONS = {
    "everything": """ p = f32[2,3,7,6] parameter(0)
 k = f32[4,3,3,2] parameter(1)
 ROOT r = f32[2,4,7,9] convolution(p, k), dim_labels=bf01_oi01->bf01,
   window={size=3x2 stride=2x1 pad=2_3x-1_2 lhs_dilate=2x2 rhs_dilate=2x3 rhs_reversal=1x0}""",
    "batch groups": """ p = f32[4,3,5] parameter(0)
 k = f32[6,3,3] parameter(1)
 ROOT r = f32[2,6,3] convolution(p, k), window={size=3}, dim_labels=bf0_oi0->bf0, batch_group_count=2""",
    "feature groups": """ p = f32[4,6,5] parameter(0)
 k = f32[8,3,3] parameter(1)
 ROOT r = f32[4,8,3] convolution(p, k), window={size=3}, dim_labels=bf0_oi0->bf0, feature_group_count=2""",
    "integers": """ p = s8[4,6,5] parameter(0)
 k = s8[8,6,3] parameter(1)
 ROOT r = s32[4,8,3] convolution(p, k), window={size=3}, dim_labels=bf0_oi0->bf0""",
    "channels last": """ p = bf16[2,8,8,3] parameter(0)
 k = bf16[3,3,3,4] parameter(1)
 ROOT r = bf16[2,4,4,4] convolution(p, k), window={size=3x3 stride=2x2 pad=0_1x1_0}, dim_labels=b01f_01io->b01f""",
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution(name: str) -> None:
    check(program(CONVOLUTIONS[name]))


def _value(body: str) -> tuple[list[np.ndarray], np.ndarray]:
    module = parse(program(body))
    values = inputs(module)
    return values, evaluate(module, *values)[0]


def test_ragged_dot_with_ragged_rows() -> None:
    (x, y), got = _value(
        """ p = f32[9,4] parameter(0)
 q = f32[3,4,5] parameter(1)
 g = s32[3] constant({2,0,5})
 ROOT r = f32[9,5] ragged-dot(p, q, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0},
   rhs_group_dims={0}"""
    )
    np.testing.assert_allclose(got, np.concatenate([x[:2] @ y[0], x[2:7] @ y[2], np.zeros((2, 5))]), rtol=1e-5)


def test_ragged_dot_with_ragged_sums() -> None:
    (x, y), got = _value(
        """ p = f32[4,9] parameter(0)
 q = f32[9,5] parameter(1)
 g = s32[3] constant({2,0,5})
 ROOT r = f32[3,4,5] ragged-dot(p, q, g), lhs_contracting_dims={1}, rhs_contracting_dims={0}, lhs_ragged_dims={1}"""
    )
    want = np.stack([x[:, :2] @ y[:2], np.zeros((4, 5)), x[:, 2:7] @ y[2:7]])
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_scaled_dot() -> None:
    (x, y, s), got = _value(
        """ p = f32[4,6] parameter(0)
 q = f32[6,5] parameter(1)
 s = f32[4,2] parameter(2)
 one = f32[] constant(1)
 ROOT r = f32[4,5] scaled-dot(p, q, s, one), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""
    )
    np.testing.assert_allclose(got, (x * np.repeat(s, 3, 1)) @ y, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("algorithm", "bits"), [("dot_bf16_bf16_f32", 8), ("dot_tf32_tf32_f32", 11)])
def test_dot_algorithms_round_their_operands(algorithm: str, bits: int) -> None:
    (x, y), got = _value(
        " p = f32[8,8] parameter(0)\n q = f32[8,8] parameter(1)\n ROOT r = f32[8,8] dot(p, q),"
        f" lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, algorithm={algorithm}"
    )
    exact = x.astype(np.float64) @ y.astype(np.float64)
    worst = np.abs(got - exact).max()
    assert 0 < worst < 2.0**-bits * 8 * np.abs(x).max() * np.abs(y).max()
