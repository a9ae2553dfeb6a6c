"""Factorisations of LAPACK and cuSOLVER, as JAX calls them.

LAPACK's own routines run in the program's precision, so that what LAPACK leaves open (signs of eigenvectors, order of
pivots) comes out as it does in XLA:CPU, which calls the same ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from heron.evaluator.calls.table import evaluates
from heron.hlo.calls import lapack as calls
from heron.hlo.calls.lapack import is_lower, letter, mode, options, side_is_left
from heron.hlo.ir.instruction import Instruction
from heron.hlo.meaning import linalg
from heron.hlo.meaning.scipy_part import scipy_part


def lapack(name: str, a: np.ndarray) -> Any:
    """The routine for arrays like `a`."""
    return scipy_part("linalg").get_lapack_funcs(name, (a,))


def batched(i: Instruction, function: Callable[[np.ndarray], tuple[np.ndarray, ...]], a: np.ndarray) -> Any:
    """`function` on each matrix, its results stacked and cast as the instruction's result says."""
    shapes = i.shape.tuple_shapes or (i.shape,)
    results = [np.zeros(s.dims, s.element_type.dtype) for s in shapes]
    for at in np.ndindex(*a.shape[:-2]):
        for result, value in zip(results, function(a[at]), strict=True):
            if result.ndim >= len(at):  # vectors that are not wanted may be single numbers
                result[at] = value
    return tuple(results) if i.shape.is_tuple else results[0]


@evaluates(calls.POTRF)
def potrf(i: Instruction, a: np.ndarray) -> tuple[np.ndarray, ...]:
    """Cholesky: (factor, info). The other triangle of the factor is the input's, as LAPACK leaves it."""
    lower = is_lower(options(i))
    factor, info = linalg.cholesky(a, lower)
    other = np.triu(np.ones(a.shape[-2:], bool), 1) if lower else np.tril(np.ones(a.shape[-2:], bool), -1)
    return np.where(other, a, factor), info


@evaluates(calls.TRSM)
def trsm(i: Instruction, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Triangular solve."""
    o = options(i)
    transpose = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}[letter(o, "trans_x", "N")]
    unit = letter(o, "diag", "N") == "U"
    return linalg.triangular_solve(a, b, side_is_left(i), letter(o, "uplo", "L") == "L", transpose, unit)


@evaluates(calls.GETRF)
def getrf(i: Instruction, a: np.ndarray) -> Any:
    """LU with partial pivoting: (factors, pivots counted from 1, info)."""
    routine = lapack("getrf", a)

    def one(m: np.ndarray) -> tuple[np.ndarray, ...]:
        factors, pivots, info = routine(m)
        return factors, pivots + 1, np.asarray(info)

    return batched(i, one, a)


@evaluates(calls.GEQRF, calls.QR)
def geqrf(i: Instruction, a: np.ndarray) -> Any:
    """QR: (R with the Householder vectors below, their factors)."""
    routine = lapack("geqrf", a)
    return batched(i, lambda m: routine(m)[:2], a)


@evaluates(calls.ORGQR, calls.HOUSEHOLDER)
def orgqr(i: Instruction, a: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """Q from its Householder vectors."""
    routine = lapack("ungqr" if a.dtype.kind == "c" else "orgqr", a)
    result = np.zeros(i.shape.dims, i.shape.element_type.dtype)
    for at in np.ndindex(*a.shape[:-2]):
        result[at] = routine(a[at], tau[at])[0]
    return result


@evaluates(calls.SYEVD)
def syevd(i: Instruction, a: np.ndarray) -> Any:
    """Eigenvectors (columns) and ascending eigenvalues of a Hermitian matrix: (vectors, values, info)."""
    o = options(i)
    routine = lapack("heevd" if a.dtype.kind == "c" else "syevd", a)
    vectors_wanted = letter(o, "mode", "V") == "V"

    def one(m: np.ndarray) -> tuple[np.ndarray, ...]:
        values, vectors, info = routine(m, compute_v=int(vectors_wanted), lower=int(is_lower(o)))
        return vectors, values, np.asarray(info)

    return batched(i, one, a)


@evaluates(calls.EIGH)
def eigh(i: Instruction, a: np.ndarray) -> Any:
    """The same of XLA's own solver: (vectors, values)."""
    routine = lapack("heevd" if a.dtype.kind == "c" else "syevd", a)

    def one(m: np.ndarray) -> tuple[np.ndarray, ...]:
        values, vectors, _ = routine(m, lower=int(calls.eigh_is_lower(i)))
        return vectors, values

    return batched(i, one, a)


@evaluates(calls.GESDD)
def gesdd(i: Instruction, a: np.ndarray) -> Any:
    """Singular values: (what is left of a, values, U, V^H, info); mode N: values alone, S: thin, A: full."""
    vectors, full = mode(i)
    return batched(i, lambda m: _svd(m, vectors, full), a)


@evaluates(calls.GESVD, calls.GESVDJ)
def gesvd(i: Instruction, a: np.ndarray) -> Any:
    """Singular values: (rest of a, values, U, V, info); gesvd has V^H, and of a transposed matrix V^H before U."""
    wanted, full = mode(i)
    adjoint, swapped = i.custom_call_target == "cusolver_gesvd_ffi", options(i).get("transposed", False)

    def one(m: np.ndarray) -> tuple[np.ndarray, ...]:
        left, values, u, vt, info = _svd(m, wanted, full)
        v = vt if adjoint else vt.conj().T
        return left, values, *((v, u) if adjoint and swapped else (u, v)), info

    return batched(i, one, a)


def _svd(m: np.ndarray, wanted: bool, full: bool) -> tuple[np.ndarray, ...]:
    u, values, vt, info = lapack("gesdd", m)(m, compute_uv=int(wanted), full_matrices=int(full))
    if not wanted:  # unspecified outputs
        u = vt = np.zeros((), m.dtype)
    return m, values, u, vt, np.asarray(info)


@evaluates(calls.PIVOTS, "LuPivotsToPermutation")
def pivots_to_permutation(i: Instruction, pivots: np.ndarray) -> np.ndarray:
    """The permutation a sequence of row swaps (counted from 0) amounts to."""
    result = np.broadcast_to(np.arange(i.shape.dims[-1], dtype=np.int32), i.shape.dims).copy()
    for at in np.ndindex(*pivots.shape[:-1]):
        line = result[at]
        for k, p in enumerate(pivots[at]):
            line[k], line[p] = line[p], line[k]
    return result
