"""Transforms, factorisations, normalisation and random bits, against XLA:CPU."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from heron.evaluator import Evaluator, evaluate
from heron.hlo.text import parse
from tests.hlo.ops.agree import check, program

FFTS = [
    ("FFT", "c64[3,4,5]", "c64[3,4,5]", "4,5"),
    ("IFFT", "c128[3,4,5]", "c128[3,4,5]", "3,4,5"),
    ("RFFT", "f32[3,5]", "c64[3,3]", "5"),
    ("IRFFT", "c64[2,5,3]", "f32[2,5,4]", "5,4"),
    ("IRFFT", "c128[3]", "f64[5]", "5"),
]


@pytest.mark.parametrize(("kind", "source", "to", "length"), FFTS)
def test_fft(kind: str, source: str, to: str, length: str) -> None:
    body = f" p = {source} parameter(0)\n ROOT r = {to} fft(p), fft_type={kind}, fft_length={{{length}}}"
    check(program(body))


def test_cholesky() -> None:
    square = """ p = f32[2,4,4] parameter(0)
 t = f32[2,4,4] transpose(p), dimensions={0,2,1}
 m = f32[2,4,4] dot(p, t), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}
"""
    check(program(square + " ROOT r = f32[2,4,4] cholesky(m), lower=true"), rtol=1e-4)
    check(program(square + " ROOT r = f32[2,4,4] cholesky(m)"), rtol=1e-4)


def test_cholesky_of_what_has_none_is_nan() -> None:
    check(program(" p = f32[4,4] parameter(0)\n ROOT r = f32[4,4] cholesky(p), lower=true"))


FLAGS = list(itertools.product(("true", "false"), ("true", "false"), ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")))


@pytest.mark.parametrize(("left", "lower", "transpose"), FLAGS)
def test_triangular_solve(left: str, lower: str, transpose: str) -> None:
    b = "c64[2,3,2]" if left == "true" else "c64[2,2,3]"
    flags = f"left_side={left}, lower={lower}, transpose_a={transpose}"
    check(
        program(
            f" a = c64[2,3,3] parameter(0)\n b = {b} parameter(1)\n x = {b} triangular-solve(a, b), {flags}\n"
            f" y = {b} triangular-solve(a, b), {flags}, unit_diagonal=true\n ROOT t = ({b}, {b}) tuple(x, y)"
        ),
        rtol=1e-4,
    )


NORMALIZATIONS = {
    "training": """ p = f32[3,4,5] parameter(0)
 s = f32[4] parameter(1)
 o = f32[4] parameter(2)
 ROOT r = (f32[3,4,5], f32[4], f32[4]) batch-norm-training(p, s, o), epsilon=0.01, feature_index=1""",
    "inference": """ p = f32[3,4,5] parameter(0)
 s = f32[4] parameter(1)
 o = f32[4] parameter(2)
 m = f32[4] parameter(3)
 w = f32[4] parameter(4)
 v = f32[4] abs(w)
 ROOT r = f32[3,4,5] batch-norm-inference(p, s, o, m, v), epsilon=0.01, feature_index=1""",
    "grad": """ p = f32[3,4,5] parameter(0)
 s = f32[4] parameter(1)
 m = f32[4] parameter(2)
 w = f32[4] parameter(3)
 v = f32[4] abs(w)
 g = f32[3,4,5] parameter(4)
 ROOT r = (f32[3,4,5], f32[4], f32[4]) batch-norm-grad(p, s, m, v, g), epsilon=0.01, feature_index=1""",
}


@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_batch_norm(name: str) -> None:
    check(program(NORMALIZATIONS[name]))


STATE = ["12345678901234567", "18446744073709551614", "77"]
DATA = ["u32[7]", "u32[3,5]", "u32[4,3]", "u32[3,4,5]", "u32[]", "u64[3,3]", "u8[11]", "u16[5,2]", "s64[5]", "f32[6]"]


@pytest.mark.parametrize(
    ("algorithm", "words"), [("rng_three_fry", 2), ("rng_philox", 2), ("rng_philox", 3), ("rng_default", 3)]
)
def test_random_bits(algorithm: str, words: int) -> None:
    state = f"u64[{words}]"
    lines = [f" s = {state} constant({{{', '.join(STATE[:words])}}})"]
    for n, data in enumerate(DATA):
        lines.append(f" r{n} = ({state}, {data}) rng-bit-generator(s), algorithm={algorithm}")
        lines.append(
            f" a{n} = {state} get-tuple-element(r{n}), index=0\n b{n} = {data} get-tuple-element(r{n}), index=1"
        )
    parts = ", ".join(f"{state}, {data}" for data in DATA)
    lines.append(f" ROOT t = ({parts}) tuple({', '.join(f'a{n}, b{n}' for n in range(len(DATA)))})")
    check(program("\n".join(lines)), bits=True)


def test_rng_draws_from_its_distribution_and_repeats_itself() -> None:
    text = program(
        """ a = f32[] constant(2)
 b = f32[] constant(3)
 u = f32[4000] rng(a, b), distribution=rng_uniform
 n = f32[4000] rng(a, b), distribution=rng_normal
 i = s32[] constant(-1)
 j = s32[] constant(5)
 k = s32[4000] rng(i, j), distribution=rng_uniform
 ROOT t = (f32[4000], f32[4000], s32[4000]) tuple(u, n, k)"""
    )
    uniform, normal, whole = evaluate(parse(text))
    assert uniform.min() >= 2 and uniform.max() < 3 and abs(uniform.mean() - 2.5) < 0.02
    assert abs(normal.mean() - 2) < 0.2 and abs(normal.std() - 3) < 0.2
    assert set(whole.tolist()) == {-1, 0, 1, 2, 3, 4}
    assert np.array_equal(evaluate(parse(text))[0], uniform)


def test_rng_state_advances() -> None:
    text = program(
        """ a = u64[2] rng-get-and-update-state(), delta=5
 b = u64[2] rng-get-and-update-state(), delta=1, control-predecessors={a}
 ROOT t = (u64[2], u64[2]) tuple(a, b)"""
    )
    first, second = Evaluator(parse(text)).run()
    assert second.tolist() == [first[0] + 5, first[1]]


def test_sort_by_a_comparator_with_tuples() -> None:
    """A pair of an array and a number is no array."""
    source = """HloModule m
less { a = f32[] parameter(0) b = f32[] parameter(1) k = s32[] parameter(2) l = s32[] parameter(3)
  z = s32[] constant(7) p = (f32[], s32[]) tuple(a, z) q = (f32[], s32[]) tuple(b, z)
  x = f32[] get-tuple-element(p), index=0 y = f32[] get-tuple-element(q), index=0
  ROOT c = pred[] compare(x, y), direction=LT }
ENTRY e { x = f32[9] parameter(0) n = s32[9] iota(), iota_dimension=0
  ROOT s = (f32[9], s32[9]) sort(x, n), dimensions={0}, is_stable=true, to_apply=less }"""
    x = np.array([3, 1, 2, 1, 0, 5, 4, -1, 2], np.float32)
    values, positions = evaluate(parse(source), x)
    assert np.array_equal(values, np.sort(x)) and np.array_equal(positions, np.argsort(x, kind="stable"))
