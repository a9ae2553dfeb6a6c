"""Small products: which of them kernels compute, alone and with what is around them, and their values."""

from __future__ import annotations

import numpy as np
import pytest

from heron.compiling import compile
from heron.evaluator import evaluate
from heron.hlo import text


def dot(t: str, lhs: str, rhs: str, out: str, dims: str) -> str:
    return f"""HloModule m

ENTRY e {{
  a = {t}[{lhs}] parameter(0)
  b = {t}[{rhs}] parameter(1)
  n = {t}[{lhs}] negate(a)
  d = {t}[{out}] dot(n, b), {dims}
  ROOT r = {t}[{out}] multiply(d, d)
}}
"""


def contracting(lhs: int, rhs: int, batch: bool = True) -> str:
    both = "lhs_batch_dims={0}, rhs_batch_dims={0}, " if batch else ""
    return f"{both}lhs_contracting_dims={{{lhs}}}, rhs_contracting_dims={{{rhs}}}"


SMALL = [
    ("50,2,2", "50,2", "50,2", contracting(2, 1)),
    ("50,3,3", "50,3,3", "50,3,3", contracting(2, 1)),
    ("50,3,3", "50,3,3", "50,3,3", contracting(1, 2)),
    ("20,9,9", "20,9,9", "20,9,9", contracting(2, 1)),
    ("20,7,16", "20,16,9", "20,7,9", contracting(2, 1)),
    ("300,8", "8,6", "300,6", contracting(1, 0, batch=False)),
    ("8,300", "8,6", "300,6", contracting(0, 0, batch=False)),
    ("3,4", "4", "3", contracting(1, 0, batch=False)),
    ("3000,8", "8", "3000", contracting(1, 0, batch=False)),
    ("5", "700,5", "700", contracting(0, 1, batch=False)),
    ("6,300,7", "6,7", "6,300", contracting(2, 1)),
]
#: columns that lie apart, of rows so short that vectors are shuffled out of them; the last two have longer rows
APART = [
    ("300,3", "4,3", "300,4", contracting(1, 1, batch=False)),
    ("4,3", "300,3", "4,300", contracting(1, 1, batch=False)),
    ("300,4", "2,4", "300,2", contracting(1, 1, batch=False)),
    ("300,3", "3,3", "300,3", contracting(1, 0, batch=False)),
    ("4,300", "4,3", "300,3", contracting(0, 0, batch=False)),
    ("50,9,4", "50,9,4", "50,9,9", contracting(2, 2)),
    ("300,16", "7,16", "300,7", contracting(1, 1, batch=False)),
    ("300,11", "8,11", "300,8", contracting(1, 1, batch=False)),
    ("3,300,4", "3,4,2", "3,300,2", contracting(2, 1)),
    ("3,4,4", "3,300,4", "3,4,300", contracting(2, 2)),
]
#: of types that go into the result's
NARROW = [
    ("3,300,4", "3,4,2", "3,300,2", contracting(2, 1)),
    ("300,5", "4,5", "300,4", contracting(1, 1, batch=False)),
    ("300,8", "8", "300", contracting(1, 0, batch=False)),
]
LARGE = [
    ("50,9,9", "50,9,9", "50,9,9", contracting(2, 2)),  # columns lie apart
    ("40,17", "17,40", "40,40", contracting(1, 0, batch=False)),
    ("40,16", "16,40", "40,40", contracting(1, 0, batch=False)),
    ("3000,9", "9", "3000", contracting(1, 0, batch=False)),
    ("8,16", "300,16", "8,300", contracting(1, 1, batch=False)),
    ("300,16", "16,4", "300,4", contracting(1, 0, batch=False)),
]


def run(module: text.Module, made: list[np.ndarray]) -> tuple[int, list[np.ndarray], list[np.ndarray]]:
    """The number of library products, and the values of both sides."""
    compiled = compile(module, "cpu")
    calls = str(compiled.stage("thunks")).count("gemm ")
    ours, expected = compiled(*made), evaluate(module, *made)
    ours = ours if isinstance(ours, (list, tuple)) else [ours]
    return calls, [np.asarray(v) for v in ours], [np.asarray(v) for v in expected]


def arrays(module: text.Module) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = [p.shape for p in module.entry.parameters]
    return [(rng.standard_normal(s.dims) * 4).astype(s.element_type.dtype) for s in shapes]


@pytest.mark.parametrize("lhs, rhs, out, dims", SMALL)
@pytest.mark.parametrize("t", ["f32", "f64", "c64", "s32"])
def test_computed_by_the_kernel_around_them(t: str, lhs: str, rhs: str, out: str, dims: str) -> None:
    module = text.parse(dot(t, lhs, rhs, out, dims))
    calls, (ours,), (expected,) = run(module, arrays(module))
    assert not calls
    np.testing.assert_allclose(ours, expected, rtol=2e-5, atol=2e-4)


@pytest.mark.parametrize("lhs, rhs, out, dims", APART)
@pytest.mark.parametrize("t", ["f32", "f64", "s32"])
def test_columns_apart(t: str, lhs: str, rhs: str, out: str, dims: str) -> None:
    module = text.parse(dot(t, lhs, rhs, out, dims))
    calls, (ours,), (expected,) = run(module, arrays(module))
    assert not calls
    np.testing.assert_allclose(ours, expected, rtol=2e-5, atol=2e-4)


def test_computed_rows_are_not_shuffled() -> None:
    """Two columns of a function of another product: its values are computed in vectors, and stored."""
    module = text.parse("""HloModule m

ENTRY e {
  a = f32[300,4] parameter(0)
  b = f32[4,8] parameter(1)
  c = f32[8,2] parameter(2)
  d = f32[300,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[300,8] tanh(d)
  ROOT r = f32[300,2] dot(t, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
""")
    calls, (ours,), (expected,) = run(module, arrays(module))
    assert calls == 1
    np.testing.assert_allclose(ours, expected, rtol=2e-5, atol=2e-4)


@pytest.mark.parametrize("lhs, rhs, out, dims", NARROW)
@pytest.mark.parametrize("narrow, wide", [("bf16", "f32"), ("s8", "s32"), ("u8", "s32"), ("s16", "s64")])
def test_of_narrow_numbers(narrow: str, wide: str, lhs: str, rhs: str, out: str, dims: str) -> None:
    module = text.parse(f"""HloModule m

ENTRY e {{
  a = {narrow}[{lhs}] parameter(0)
  b = {narrow}[{rhs}] parameter(1)
  d = {wide}[{out}] dot(a, b), {dims}
  ROOT r = {wide}[{out}] negate(d)
}}
""")
    rng = np.random.default_rng(0)
    made = [rng.integers(0, 255, p.shape.dims).astype(p.shape.element_type.dtype) for p in module.entry.parameters]
    calls, (ours,), (expected,) = run(module, made)
    assert not calls
    np.testing.assert_array_equal(ours, expected)


@pytest.mark.parametrize("left, right, out", [("5000", "5000", ""), ("40,500", "500", "40"), ("500", "500,40", "40")])
def test_vectors_of_bf16(left: str, right: str, out: str) -> None:
    """A kernel reads them once, which code for matrices rearranges."""
    last = left.count(",")
    module = text.parse(dot("bf16", left, right, out, contracting(last, 0, batch=False)))
    calls, (ours,), (expected,) = run(module, arrays(module))
    assert not calls
    np.testing.assert_allclose(ours.astype(np.float32), expected.astype(np.float32), rtol=1 / 64)


@pytest.mark.parametrize("lhs, rhs, out, dims", LARGE)
def test_left_to_the_library(lhs: str, rhs: str, out: str, dims: str) -> None:
    module = text.parse(dot("f32", lhs, rhs, out, dims))
    assert run(module, arrays(module))[0] == 1
