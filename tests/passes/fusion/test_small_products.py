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
LARGE = [
    ("50,9,9", "50,9,9", "50,9,9", contracting(2, 2)),  # columns lie apart
    ("40,17", "17,40", "40,40", contracting(1, 0, batch=False)),
    ("40,16", "16,40", "40,40", contracting(1, 0, batch=False)),
    ("3000,9", "9", "3000", contracting(1, 0, batch=False)),
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


@pytest.mark.parametrize("lhs, rhs, out, dims", LARGE)
def test_left_to_the_library(lhs: str, rhs: str, out: str, dims: str) -> None:
    module = text.parse(dot("f32", lhs, rhs, out, dims))
    assert run(module, arrays(module))[0] == 1
