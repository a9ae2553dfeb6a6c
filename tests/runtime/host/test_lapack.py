"""LAPACK works on matrices where they lie, by rows or by columns, operand and result in one place or two."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from heron.runtime.host import fft, lapack

TYPES = (np.float32, np.float64, np.complex64, np.complex128)


def _random(rng: np.random.Generator, dtype: type, *shape: int) -> np.ndarray:
    real = rng.normal(size=shape)
    return (real + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else real).astype(dtype)


def _stored(x: np.ndarray, order: str) -> np.ndarray:
    """A copy whose matrices lie by rows ("C"), by columns ("F"), or with gaps (" ")."""
    if order == "F":
        return np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)
    return x.copy() if order == "C" else np.repeat(x, 2, axis=-1)[..., ::2]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("lower", [True, False])
def test_cholesky(dtype: type, lower: bool) -> None:
    rng = np.random.default_rng(0)
    factors = _random(rng, dtype, 2, 5, 5)
    a = factors @ factors.conj().swapaxes(1, 2) + 5 * np.eye(5, dtype=dtype)
    wanted = np.linalg.cholesky(a)
    wanted = wanted if lower else wanted.conj().swapaxes(1, 2)
    mine, others = (np.tril, np.triu) if lower else (np.triu, np.tril)
    for order, result, shared in itertools.product("CF ", "CF ", (True, False)):
        stored = _stored(a, order)
        out = stored if shared else _stored(np.empty_like(a), result)
        info = np.full(2, 9, np.int32)
        lapack.Potrf(lower)(stored, out, info)
        np.testing.assert_allclose(mine(out), wanted, rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(others(out, 1 if lower else -1), others(a, 1 if lower else -1))
        assert not info.any()
        stored = _stored(a, order)
        out = stored if shared else _stored(np.empty_like(a), result)
        lapack.Cholesky(lower)(stored, out)
        np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("transpose", "NTC")
def test_triangular_solve(dtype: type, transpose: str) -> None:
    rng = np.random.default_rng(1)
    a = _random(rng, dtype, 2, 4, 4) + 4 * np.eye(4, dtype=dtype)
    for left, lower, unit in itertools.product((True, False), repeat=3):
        b = _random(rng, dtype, 2, *((4, 3) if left else (3, 4)))
        triangle = np.tril(a, -1 if unit else 0) if lower else np.triu(a, 1 if unit else 0)
        triangle = triangle + np.eye(4) if unit else triangle
        op = {"N": triangle, "T": triangle.swapaxes(1, 2), "C": triangle.conj().swapaxes(1, 2)}[transpose]
        for factors, rights, result, shared in itertools.product("CF", "CF ", "CF", (True, False)):
            right = _stored(b, rights)
            x = right if shared else _stored(np.empty_like(b), result)
            lapack.TriangularSolve(left, lower, transpose, unit)(_stored(a, factors), right, x)
            np.testing.assert_allclose(op @ x if left else x @ op, b, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("order", "CF")
def test_a_solution_where_the_triangles_lay(order: str) -> None:
    rng = np.random.default_rng(3)
    a = _stored(_random(rng, np.float64, 2, 4, 4) + 4 * np.eye(4), order)
    b, triangle = _random(rng, np.float64, 2, 4, 4), np.tril(a)
    lapack.TriangularSolve(True, True, "N", False)(a, b, a)
    np.testing.assert_allclose(triangle @ a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["FFT", "IFFT", "RFFT", "IRFFT"])
def test_a_transform_has_the_same_bits_with_any_number_of_threads(kind: str) -> None:
    rng = np.random.default_rng(2)
    x = _random(rng, np.float32 if kind == "RFFT" else np.complex64, 3, 300, 129)
    length = 256 if kind == "IRFFT" else 129
    columns = {"RFFT": 65, "IRFFT": 256}.get(kind, 129)
    results = []
    for threads in (1, 2, 5):
        out = np.empty((3, 300, columns), np.float32 if kind == "IRFFT" else np.complex64)
        fft.Transform(kind, (length,), threads)(x, out)
        results.append(out.tobytes())
    assert len(set(results)) == 1
