"""Batched matrix factorisations, computed in double precision and rounded once."""

from __future__ import annotations

from math import prod

import numpy as np

from heron.hlo.meaning.numeric import precise


def cholesky(a: np.ndarray, lower: bool) -> tuple[np.ndarray, np.ndarray]:
    """The Cholesky factor (all NaN on failure) and 0, or the order of the first bad minor, per matrix."""
    n = a.shape[-1]
    flat = precise(a).reshape(prod(a.shape[:-2]), n, n)
    results, info = np.zeros_like(flat), np.zeros(len(flat), np.int32)
    for at, m in enumerate(flat):
        triangle = np.tril(m) if lower else np.tril(np.swapaxes(m, 0, 1).conj())
        factor = _factor(triangle)
        results[at] = factor if lower else factor.conj().T
        bad = np.isnan(np.diagonal(factor))
        info[at] = int(bad.argmax()) + 1 if bad.any() else 0
        if bad.any():
            results[at] = np.nan
    return results.reshape(a.shape).astype(a.dtype), info.reshape(a.shape[:-2])


def _factor(a: np.ndarray) -> np.ndarray:
    """Lower Cholesky factor from a lower triangle; NaN from the first non-positive pivot on."""
    full = a + np.tril(a, -1).conj().T
    try:
        return np.linalg.cholesky(full)
    except np.linalg.LinAlgError:
        pass
    factor = np.zeros_like(a)
    for k in range(len(a)):
        pivot = (a[k, k] - (factor[k, :k] * factor[k, :k].conj()).sum()).real
        if not pivot > 0:
            factor[k:, k:] = np.nan
            return factor
        factor[k, k] = np.sqrt(pivot)
        factor[k + 1 :, k] = (a[k + 1 :, k] - factor[k + 1 :, :k] @ factor[k, :k].conj()) / factor[k, k]
    return factor


def triangular_solve(
    a: np.ndarray, b: np.ndarray, left: bool, lower: bool, transpose: str, unit_diagonal: bool
) -> np.ndarray:
    """Substitution, all matrices of the batch at once.

    Shapes: a [..., n, n]; b [..., n, m], or [..., m, n] with `a` on the right.
    """
    result_type = b.dtype
    a, b = precise(a), precise(b)
    a = np.tril(a) if lower else np.triu(a)
    if transpose != "NO_TRANSPOSE":
        a, lower = np.swapaxes(a, -1, -2), not lower
        if transpose == "ADJOINT":
            a = a.conj()
    if not left:  # x a = b  ==  a^T x^T = b^T
        a, b, lower = np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2), not lower
    n = a.shape[-1]
    x = np.zeros(b.shape, np.result_type(a, b))
    for row in range(n) if lower else reversed(range(n)):
        done = slice(0, row) if lower else slice(row + 1, n)
        known = np.matmul(a[..., row : row + 1, done], x[..., done, :])[..., 0, :]
        value = b[..., row, :] - known
        x[..., row, :] = value if unit_diagonal else value / a[..., row, row, None]
    return (x if left else np.swapaxes(x, -1, -2)).astype(result_type)
