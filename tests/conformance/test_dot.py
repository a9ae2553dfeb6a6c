"""dot in all its forms against XLA:CPU; ragged-dot and scaled-dot, which XLA:CPU lacks, against sums spelt out."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from heron.evaluator import evaluate
from heron.hlo.text import parse
from tests.conformance.case import Case
from tests.conformance.runner import expect_agreement
from tests.conformance.tables import COMPLEX, F8, FLOATS, INTEGERS, SMALL_INTEGERS, SUMS, table
from tests.hlo.ops.agree import inputs, program

DIMENSIONS = {
    "matrices": """ p = T[3,4] parameter(0)
 q = T[4,5] parameter(1)
 ROOT r = T[3,5] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
    "two batch dimensions in another order": """ p = T[2,3,4,5] parameter(0)
 q = T[5,4,2,6] parameter(1)
 ROOT r = T[5,2,3,6] dot(p, q), lhs_batch_dims={3,0}, rhs_batch_dims={0,2}, lhs_contracting_dims={2},
   rhs_contracting_dims={1}""",
    "two contracted in another order": """ p = T[4,2,3] parameter(0)
 q = T[3,5,4] parameter(1)
 ROOT r = T[2,5] dot(p, q), lhs_contracting_dims={0,2}, rhs_contracting_dims={2,0}""",
    "vectors": """ p = T[7] parameter(0)
 q = T[7] parameter(1)
 ROOT r = T[] dot(p, q), lhs_contracting_dims={0}, rhs_contracting_dims={0}""",
    "scalars": """ p = T[] parameter(0)
 q = T[] parameter(1)
 ROOT r = T[] dot(p, q), lhs_contracting_dims={}, rhs_contracting_dims={}""",
    "outer product": """ p = T[3] parameter(0)
 q = T[2,2] parameter(1)
 ROOT r = T[3,2,2] dot(p, q), lhs_contracting_dims={}, rhs_contracting_dims={}""",
    "nothing to sum": """ p = T[3,0] parameter(0)
 q = T[0,2] parameter(1)
 ROOT r = T[3,2] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
    "no rows": """ p = T[0,3] parameter(0)
 q = T[3,2] parameter(1)
 ROOT r = T[0,2] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}""",
    "size one": """ p = T[1,1,1] parameter(0)
 q = T[1,1,1] parameter(1)
 ROOT r = T[1,1,1] dot(p, q), lhs_batch_dims={1}, rhs_batch_dims={2}, lhs_contracting_dims={2},
   rhs_contracting_dims={0}""",
    "all batch": """ p = T[3,2] parameter(0)
 q = T[2,3] parameter(1)
 ROOT r = T[3,2] dot(p, q), lhs_batch_dims={0,1}, rhs_batch_dims={1,0}, lhs_contracting_dims={},
   rhs_contracting_dims={}""",
}

#: operands and result
MIXED = """f32 f32 f64, bf16 bf16 f32, f16 f16 f32, f8e4m3fn f8e5m2 f32, f8e4m3fn f8e4m3fn bf16, s8 s8 s32, u8 s8 s32,
u8 u8 u32, s16 s16 s32, s8 bf16 f32, s8 f32 f32, s32 s32 s64, pred pred s32, bf16 f32 f32, f32 bf16 bf16, u8 f32 f32,
s8 s8 f32, f32 f32 bf16, s32 s32 s8, c64 c64 c128, f32 c64 c64, f64 f64 f32,
s4 s8 s32, f32 f32 s32, f32 f32 s8, bf16 bf16 s32, f64 f64 s64, f32 s8 s16, c64 c64 f32, c64 f32 s32, s8 s8 pred,
s8 u8 s64, s64 s64 f32, u32 f32 c64"""
PRECISIONS = ("default,default", "high,highest", "highest,highest")
#: algorithms XLA:CPU computes to the same values, with operand and result types
ALGORITHMS = {
    "dot_any_f8_any_f8_f32": ("f8e4m3fn", "f32"),
    "dot_f16_f16_f16": ("f16", "f16"),
    "dot_f16_f16_f32": ("f16", "f32"),
    "dot_bf16_bf16_bf16": ("bf16", "bf16"),
    "dot_bf16_bf16_f32": ("bf16", "f32"),
    "dot_bf16_bf16_f32_x3": ("f32", "f32"),
    "dot_bf16_bf16_f32_x6": ("f32", "f32"),
    "dot_bf16_bf16_f32_x9": ("f32", "f32"),
    "dot_tf32_tf32_f32_x3": ("f32", "f32"),
    "dot_f32_f32_f32": ("f32", "f32"),
    "dot_f64_f64_f64": ("f64", "f64"),
}


def _product(x: str, y: str, result: str, attributes: str = "") -> str:
    return (
        f" p = {x}[3,4] parameter(0)\n q = {y}[4,5] parameter(1)\n"
        f" ROOT r = {result}[3,5] dot(p, q), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}{attributes}"
    )


def dot_cases() -> list[Case]:
    types = f"{FLOATS} {INTEGERS} {SMALL_INTEGERS} {COMPLEX} {F8} pred"
    cases = table("dot", types, DIMENSIONS, close=SUMS)
    for x, y, r in (words.split() for words in MIXED.split(",")):
        cases += table("dot", r, {f"of {x} and {y}": _product(x, y, r)}, close=SUMS)
    for p in PRECISIONS:
        cases += table("dot", "f32", {p: _product("f32", "f32", "f32", f", operand_precision={{{p}}}")}, close=SUMS)
    for name, (t, r) in ALGORITHMS.items():
        cases += table("dot", r, {name: _product(t, t, r, f", algorithm={name}")}, close=SUMS)
    return cases


def test_dot() -> None:
    expect_agreement(dot_cases())


def test_large_integers_wrap() -> None:
    """Products beyond the type, and (narrow types) sums beyond it."""
    cases = []
    for t in INTEGERS.split():
        dtype = np.dtype({"s": "int", "u": "uint"}[t[0]] + t[1:])
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        x = np.array([[high, high, low, high], [low, low, high - 1, 1], [3, 5, high // 3, low]], dtype)
        y = np.resize(np.array([high, low, 1, high - 1, high // 2, 7], dtype), (4, 5))
        cases.append(Case("dot", t, _product(t, t, t), [x, y], "beyond the type"))
    expect_agreement(cases)


@pytest.mark.parametrize(("algorithm", "bits"), [("dot_bf16_bf16_f32", 8), ("dot_tf32_tf32_f32", 11)])
def test_algorithms_round_their_operands(algorithm: str, bits: int) -> None:
    """XLA:CPU keeps f32; the algorithm's name says that the operands are read with fewer bits."""
    module = parse(program(_product("f32", "f32", "f32", f", algorithm={algorithm}")))
    x, y = inputs(module)
    got = evaluate(module, x, y)[0]

    def rounded(a: np.ndarray) -> np.ndarray:
        if bits == 8:
            return a.astype(ml_dtypes.bfloat16).astype(np.float64)
        mantissa, exponent = np.frexp(a.astype(np.float64))
        return np.ldexp(np.round(np.ldexp(mantissa, bits)), exponent - bits)

    np.testing.assert_array_equal(got, (rounded(x) @ rounded(y)).astype(np.float32))


# -- ragged-dot ------------------------------------------------------------------------------------------------------
def _ragged(body: str) -> tuple[list[np.ndarray], np.ndarray]:
    module = parse(program(body))
    arrays = inputs(module)
    return arrays, evaluate(module, *arrays)[0]


SIZES = {"short": [2, 0, 5], "whole": [4, 1, 4], "long": [2, 20, 5], "none": [0, 0, 0]}


@pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("t", ["f32", "bf16", "s32"])
def test_ragged_rows(t: str, sizes: list[int]) -> None:
    words = ",".join(map(str, sizes))
    (x, y), got = _ragged(
        f""" p = {t}[9,4] parameter(0)
 q = {t}[4,5,3] parameter(1)
 g = s32[3] constant({{{words}}})
 ROOT r = {t}[9,5] ragged-dot(p, q, g), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}, lhs_ragged_dims={{0}},
   rhs_group_dims={{2}}"""
    )
    want = np.zeros((9, 5))
    group = np.repeat(np.arange(3), sizes)[:9]
    for row, g in enumerate(group):
        want[row] = x[row].astype(np.float64) @ y[:, :, g].astype(np.float64)
    np.testing.assert_array_equal(got, want.astype(got.dtype))


def test_ragged_rows_with_sizes_of_their_own() -> None:
    """Sizes for each batch and each free dimension before the ragged one; batch dimensions do not lead."""
    (x, y), got = _ragged(
        """ p = f32[3,2,6,4] parameter(0)
 q = f32[2,5,4,2] parameter(1)
 g = s32[2,3,2] constant({{{2,3},{0,6},{4,1}},{{1,1},{3,3},{6,0}}})
 ROOT r = f32[2,3,6,5] ragged-dot(p, q, g), lhs_batch_dims={1}, rhs_batch_dims={0}, lhs_contracting_dims={3},
   rhs_contracting_dims={2}, lhs_ragged_dims={2}, rhs_group_dims={3}"""
    )
    sizes = [[[2, 3], [0, 6], [4, 1]], [[1, 1], [3, 3], [6, 0]]]
    want = np.zeros((2, 3, 6, 5))
    for b in range(2):
        for a in range(3):
            for row, g in enumerate(np.repeat(np.arange(2), sizes[b][a])):
                want[b, a, row] = y[b, :, :, g].astype(np.float64) @ x[a, b, row]
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


def test_ragged_sums_with_sizes_of_their_own() -> None:
    """What lies in no group is not summed, infinities included."""
    module = parse(
        program(
            """ p = f32[2,4,9] parameter(0)
 q = f32[9,2,5] parameter(1)
 g = s32[2,3] constant({{2,0,5},{1,1,1}})
 ROOT r = f32[3,2,4,5] ragged-dot(p, q, g), lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2},
   rhs_contracting_dims={0}, lhs_ragged_dims={2}"""
        )
    )
    x, y = inputs(module)
    x[0, :, 7], y[8, 1] = np.inf, np.nan
    got = evaluate(module, x, y)[0]
    want = np.zeros((3, 2, 4, 5))
    for b, sizes in enumerate([[2, 0, 5], [1, 1, 1]]):
        for k, g in enumerate(np.repeat(np.arange(3), sizes)):
            want[g, b] += np.outer(x[b, :, k], y[k, b].astype(np.float64))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_a_ragged_batch_is_a_dot() -> None:
    (x, y), got = _ragged(
        """ p = f32[9,3,4] parameter(0)
 q = f32[9,4,5] parameter(1)
 g = s32[3] constant({2,0,5})
 ROOT r = f32[9,3,5] ragged-dot(p, q, g), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2},
   rhs_contracting_dims={1}, lhs_ragged_dims={0}"""
    )
    np.testing.assert_allclose(got, np.matmul(x, y), rtol=1e-5, atol=1e-6)


# -- scaled-dot ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("t", ["f8e4m3fn", "f8e5m2", "f4e2m1fn", "bf16"])
def test_blocks_are_scaled(t: str) -> None:
    """Scales of 2 by 16 elements on the left, of a column on the right."""
    module = parse(
        program(
            f""" p = {t}[4,64] parameter(0)
 q = {t}[64,6] parameter(1)
 s = f8e8m0fnu[2,4] parameter(2)
 u = f8e8m0fnu[1,6] parameter(3)
 ROOT r = f32[4,6] scaled-dot(p, q, s, u), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"""
        )
    )
    x, y = inputs(module)[:2]
    s = np.array([[1, 2, 0.5, 4], [0.25, 8, 1, 2]], ml_dtypes.float8_e8m0fnu)
    u = np.array([[1, 2, 4, 0.5, 16, 1]], ml_dtypes.float8_e8m0fnu)
    got = evaluate(module, x, y, s, u)[0]
    left = x.astype(np.float64) * np.repeat(np.repeat(s.astype(np.float64), 2, 0), 16, 1)
    np.testing.assert_array_equal(got, (left @ (y.astype(np.float64) * u.astype(np.float64))).astype(np.float32))


def test_a_scalar_is_no_scale() -> None:
    (x, y), got = _ragged(
        """ p = f8e4m3fn[4,32] parameter(0)
 q = f8e4m3fn[32,6] parameter(1)
 one = f8e8m0fnu[] constant(1)
 ROOT r = bf16[4,6] scaled-dot(p, q, one, one), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""
    )
    np.testing.assert_array_equal(got, (x.astype(np.float64) @ y.astype(np.float64)).astype(got.dtype))
