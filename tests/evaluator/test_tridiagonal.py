"""Tridiagonal systems that may be singular, against jaxlib's own solver."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import heron

jax = pytest.importorskip("jax")


@pytest.fixture(autouse=True)
def _wide_types() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_regular_systems_agree(dtype: str) -> None:
    rng = np.random.default_rng(2)
    lower, diagonal, upper = (rng.standard_normal((2, 7)).astype(dtype) for _ in range(3))
    lower[:, 0] = upper[:, -1] = 0
    lower[0, 3] = 0
    b = rng.standard_normal((2, 7, 2)).astype(dtype)
    inputs = lower, diagonal, upper, b

    def solve(*given: np.ndarray) -> object:
        return jax.lax.linalg.tridiagonal_solve(*given, perturb_singular=True)

    (got,) = heron.evaluate(heron.from_jax(solve, *inputs), *inputs)
    np.testing.assert_allclose(got, jax.jit(solve)(*inputs), rtol=1e-5 if dtype != "float64" else 1e-13)


@pytest.mark.parametrize(("n", "m"), [(1, 2), (2, 1), (7, 2)])
def test_systems_by_lapack_agree(n: int, m: int) -> None:
    rng = np.random.default_rng(n)
    lower, upper = (rng.standard_normal((2, n)).astype("float32") for _ in range(2))
    lower[:, 0] = upper[:, -1] = 0
    inputs = lower, rng.uniform(4, 5, (2, n)).astype("float32"), upper, rng.standard_normal((2, n, m)).astype("float32")
    module = heron.from_jax(jax.lax.linalg.tridiagonal_solve, *inputs)
    wanted = jax.jit(jax.lax.linalg.tridiagonal_solve)(*inputs)
    np.testing.assert_allclose(heron.evaluate(module, *inputs)[0], wanted, rtol=1e-5)
    np.testing.assert_allclose(heron.compile(module, "cpu")(*inputs), wanted, rtol=1e-5)


def test_a_singular_system_gives_the_null_vector() -> None:
    n = 6
    line = np.full(n, -1.0)
    diagonal = np.full(n, 2.0)
    diagonal[0] = diagonal[-1] = 1  # a path graph's Laplacian: its null vector is constant
    inputs = np.r_[0, line[1:]], diagonal, np.r_[line[:-1], 0], np.arange(1.0, n + 1)[:, None]

    def solve(*given: np.ndarray) -> object:
        return jax.lax.linalg.tridiagonal_solve(*given, perturb_singular=True)

    (got,) = heron.evaluate(heron.from_jax(solve, *inputs), *inputs)
    assert np.isfinite(got).all() and np.abs(got).max() > 1e10
    np.testing.assert_allclose(got / got[0], 1, rtol=1e-8)
