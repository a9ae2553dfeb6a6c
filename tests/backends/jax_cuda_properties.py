"""What the results of routines that JAX calls for CUDA must satisfy, written with NumPy alone.

Each function gets the inputs and the results, in f64 or c128 where they were floats, and the call's attributes as text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

Arrays = Sequence[np.ndarray]
#: of f32 routines on a few well-conditioned numbers
TOLERANCE = 2e-5


def near(a: np.ndarray, b: np.ndarray) -> None:
    np.testing.assert_allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE * max(1.0, float(np.abs(b).max(initial=0))))


def t(a: np.ndarray) -> np.ndarray:
    return a.conj().swapaxes(-1, -2)


def reflectors(a: np.ndarray, factors: np.ndarray, below: int = 0) -> np.ndarray:
    """The product of I - factor v v^H; v is 1, then what stands below the diagonal, or one further down."""
    n = a.shape[0]
    q = np.eye(n, dtype=a.dtype)
    for k, factor in enumerate(factors):
        v = np.zeros(n, a.dtype)
        v[k + below] = 1
        v[k + below + 1 :] = a[k + below + 1 :, k]
        q = q @ (np.eye(n) - factor * np.outer(v, v.conj()))
    return q


def orthonormal(q: np.ndarray) -> None:
    near(t(q) @ q, np.eye(q.shape[-1]) + np.zeros_like(t(q) @ q))


def potrf(given: str, inputs: Arrays, results: Arrays) -> None:
    lower = np.tril(results[0])
    near(lower @ t(lower), inputs[0])
    assert (np.diag(lower) > 0).all() and not results[1]


def getrf(given: str, inputs: Arrays, results: Arrays) -> None:
    lu, pivots, info = results
    (m, n), k = lu.shape, min(lu.shape)
    lower, upper = np.tril(lu[:, :k], -1) + np.eye(m, k), np.triu(lu[:k])
    swapped = inputs[0].copy()
    for row, other in enumerate(pivots - 1):
        swapped[[row, other]] = swapped[[other, row]]
    near(lower @ upper, swapped)
    assert (np.abs(lower) <= 1 + TOLERANCE).all() and not info and n == upper.shape[1]


def geqrf(given: str, inputs: Arrays, results: Arrays) -> None:
    q = reflectors(*results)
    orthonormal(q)
    near(q @ np.triu(results[0]), inputs[0])


def orgqr(given: str, inputs: Arrays, results: Arrays) -> None:
    near(results[0], reflectors(*inputs)[:, : inputs[0].shape[1]])


def ormqr(given: str, inputs: Arrays, results: Arrays) -> None:
    assert "left = true" in given and "transpose = true" in given
    near(results[0], t(reflectors(*inputs[:2])) @ inputs[2])


def syevd(given: str, inputs: Arrays, results: Arrays) -> None:
    vectors, values, info = results
    orthonormal(vectors)
    near(inputs[0] @ vectors, vectors * values)
    assert (np.diff(values) >= 0).all() and not info


def singular(given: str, inputs: Arrays, results: Arrays) -> None:
    _, values, u, v, info = results
    near(values, np.linalg.svd(inputs[0], compute_uv=False))
    assert not info
    if "compute_uv = true" in given:
        k = len(values)
        orthonormal(u)
        orthonormal(v)
        near((u[:, :k] * values) @ t(v[:, :k]), inputs[0])


def gesvd(given: str, inputs: Arrays, results: Arrays) -> None:
    singular(given, inputs, [*results[:3], t(results[3]), results[4]])


def sytrd(given: str, inputs: Arrays, results: Arrays) -> None:
    a, diagonal, beside, factors, info = results
    q = reflectors(a, factors, below=1)
    orthonormal(q)
    near(q @ (np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)) @ t(q), inputs[0])
    near(np.diag(a), diagonal)
    assert not info


def syrk(given: str, inputs: Arrays, results: Arrays) -> None:
    a, c, alpha, beta = inputs
    x = a.T if "transpose = true" in given else a
    near(results[0], alpha * (x @ x.T) + beta * c)


def eigenvectors(a: np.ndarray, values: np.ndarray, left: np.ndarray | None, right: np.ndarray | None) -> None:
    """Vectors of length 1 of distinct values that are the values of the matrix: by its invariants, to the last."""
    for power in range(1, a.shape[-1] + 1):
        near((values**power).sum(-1), np.trace(np.linalg.matrix_power(a, power), axis1=-2, axis2=-1).astype(complex))
    if right is not None:
        near(a @ right, right * values[..., None, :])
        near(np.linalg.norm(right, axis=-2), np.ones(values.shape))
    if left is not None:
        near(t(left) @ a, values[..., None] * t(left))
        near(np.linalg.norm(left, axis=-2), np.ones(values.shape))


def unpacked(v: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Vectors of a real matrix: of a pair the real part, then the imaginary part."""
    if v.dtype.kind == "c":
        return v
    found = v.astype(complex)
    for n in np.flatnonzero(values.imag > 0):
        found[:, n], found[:, n + 1] = v[:, n] + 1j * v[:, n + 1], v[:, n] - 1j * v[:, n + 1]
    return found


def geev(given: str, inputs: Arrays, results: Arrays) -> None:
    _, values, left, right, info = results
    has_left = "left = true" in given
    eigenvectors(inputs[0], values, unpacked(left, values) if has_left else None, unpacked(right, values))
    assert not info.any()


def eig_real(given: str, inputs: Arrays, results: Arrays) -> None:
    real, imaginary, left, right, info = results
    eigenvectors(inputs[0], real + 1j * imaginary, left, right)
    assert not info.any()


def eig_comp(given: str, inputs: Arrays, results: Arrays) -> None:
    values, _, right, info = results
    eigenvectors(inputs[0], values, None, right)
    assert not info.any()


def geqp3(given: str, inputs: Arrays, results: Arrays) -> None:
    a, pivots, factors = results
    q, r = reflectors(a, factors), np.triu(a)
    orthonormal(q)
    near(q @ r, inputs[0][:, pivots - 1])
    assert sorted(pivots) == list(range(1, len(pivots) + 1))
    sizes = np.abs(np.diag(r))
    assert (np.diff(sizes) <= TOLERANCE).all() or inputs[1].any()  # columns named by the caller come first


def tridiagonal(given: str, inputs: Arrays, results: Arrays) -> None:
    lower, main, upper, b = inputs
    near(residual(lower, main, upper, results[0]), b)


def residual(lower: np.ndarray, main: np.ndarray, upper: np.ndarray, x: np.ndarray) -> np.ndarray:
    """A tridiagonal matrix times columns."""
    found = main[..., None] * x
    found[..., 1:, :] += lower[..., 1:, None] * x[..., :-1, :]
    found[..., :-1, :] += upper[..., :-1, None] * x[..., 1:, :]
    return found


def cholesky_update(given: str, inputs: Arrays, results: Arrays) -> None:
    r, w = inputs
    after = results[0]
    near(after.T @ after, r.T @ r + np.outer(w, w))
    near(np.tril(after, -1), np.zeros_like(after))


def threefry(given: str, inputs: Arrays, results: Arrays) -> None:
    """By its authors' definition: 20 rounds, a key added after every fourth."""
    k1, k2, x, y = (a.astype(np.uint32) for a in inputs)
    keys = [k1, k2, k1 ^ k2 ^ np.uint32(0x1BD11BDA)]
    x, y = x + k1, y + k2
    for n in range(5):
        for turn in ((13, 15, 26, 6), (17, 29, 16, 24))[n % 2]:
            x = x + y
            y = ((y << np.uint32(turn)) | (y >> np.uint32(32 - turn))) ^ x
        x, y = x + keys[(n + 1) % 3], y + keys[(n + 2) % 3] + np.uint32(n + 1)
    np.testing.assert_array_equal(results[0], x)
    np.testing.assert_array_equal(results[1], y)


def permutation(given: str, inputs: Arrays, results: Arrays) -> None:
    rows = np.arange(len(results[0]))
    for row, other in enumerate(inputs[0]):
        rows[[row, other]] = rows[[other, row]]
    np.testing.assert_array_equal(results[0], rows)


PROPERTIES: dict[str, Callable[[str, Arrays, Arrays], None]] = {
    "cusolver_potrf_ffi": potrf,
    "cusolver_getrf_ffi": getrf,
    "cusolver_geqrf_ffi": geqrf,
    "cusolver_orgqr_ffi": orgqr,
    "cusolver_ormqr_ffi": ormqr,
    "cusolver_syevd_ffi": syevd,
    "cusolver_gesvd_ffi": gesvd,
    "cusolver_gesvdj_ffi": singular,
    "cusolver_gesvdp_ffi": singular,
    "cusolver_sytrd_ffi": sytrd,
    "cusolver_syrk_ffi": syrk,
    "cusolver_geev_ffi": geev,
    "cuhybrid_eig_real": eig_real,
    "cuhybrid_eig_comp": eig_comp,
    "cuhybrid_geqp3": geqp3,
    "cusparse_gtsv2_ffi": tridiagonal,
    "cu_tridiagonal_solve_perturbed": tridiagonal,
    "cu_cholesky_update_ffi": cholesky_update,
    "cu_threefry2x32_ffi": threefry,
    "cu_lu_pivots_to_permutation": permutation,
}
