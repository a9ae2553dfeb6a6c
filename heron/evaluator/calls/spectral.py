"""LAPACK calls beyond plain factorisations: eigenvalues, Schur forms, condensed forms, pivoted QR, tridiagonal systems.

As in `libraries`, LAPACK's own routines run in the program's precision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heron.evaluator.calls.lapack import batched, lapack
from heron.evaluator.calls.table import evaluates
from heron.hlo.calls import lapack as calls
from heron.hlo.calls.lapack import block_of, is_lower, letter, mode, options, side_of_q, wanted_sides

if TYPE_CHECKING:
    from heron.hlo.ir.instruction import Instruction


@evaluates(calls.GEEV)
def geev(i: Instruction, a: np.ndarray) -> Any:
    """Eigenvalues (complex, or real and imaginary parts), left and right eigenvectors, info."""
    wanted, routine = wanted_sides(i), lapack("geev", a)

    def one(m: np.ndarray) -> tuple[np.ndarray, ...]:
        if not np.isfinite(m).all():  # LAPACK's balancing fails, and the rest reads what it has not set
            values = [np.zeros(len(m), m.dtype)] * (1 if m.dtype.kind == "c" else 2)
            return *values, np.zeros_like(m), np.zeros_like(m), np.asarray(-4)
        *values, left, right, info = routine(m, compute_vl=int(wanted[0]), compute_vr=int(wanted[1]))
        vectors = [_paired(v, values) if w else np.zeros_like(m) for v, w in zip((left, right), wanted, strict=True)]
        return *values, *vectors, np.asarray(info)

    return batched(i, one, a)


def _paired(v: np.ndarray, values: list[np.ndarray]) -> np.ndarray:
    """Complex eigenvectors; a real routine gives real and imaginary part of a conjugate pair as two columns."""
    if len(values) == 1:
        return v
    found = v.astype(np.result_type(v.dtype, np.complex64))
    for n in np.flatnonzero(values[1] > 0):
        found[:, n] = v[:, n] + 1j * v[:, n + 1]
        found[:, n + 1] = found[:, n].conj()
    return found


@evaluates(calls.GEES)
def gees(i: Instruction, a: np.ndarray) -> Any:
    """Schur form, Schur vectors, eigenvalues (complex, or two parts), how many were selected, info."""
    routine, wanted = lapack("gees", a), letter(options(i), "mode", "V") == "V"

    def one(m: np.ndarray) -> tuple[np.ndarray, ...]:
        form, selected, *values, vectors, _, info = routine(lambda *_: False, m, compute_v=int(wanted))
        vectors = vectors if wanted else np.zeros_like(m)
        return form, vectors, *values, np.asarray(selected), np.asarray(info)

    return batched(i, one, a)


@evaluates(calls.GEHRD)
def gehrd(i: Instruction, a: np.ndarray) -> Any:
    """Hessenberg form with the reflectors below, their factors, info."""
    (low, high), routine = block_of(i), lapack("gehrd", a)

    def one(m: np.ndarray) -> tuple[np.ndarray, ...]:
        form, factors, info = routine(m, lo=low - 1, hi=high - 1)
        return form, factors, np.asarray(info)

    return batched(i, one, a)


@evaluates(calls.SYTRD)
def sytrd(i: Instruction, a: np.ndarray) -> Any:
    """Tridiagonal form with the reflectors, its diagonal, the one beside it, the reflectors' factors, info."""
    lower = is_lower(options(i))
    routine = lapack("hetrd" if a.dtype.kind == "c" else "sytrd", a)

    def one(m: np.ndarray) -> tuple[np.ndarray, ...]:
        *parts, info = routine(m, lower=int(lower))
        return *parts, np.asarray(info)

    return batched(i, one, a)


@evaluates(calls.LAPACK_GESVD)
def gesvd(i: Instruction, a: np.ndarray) -> Any:
    """Singular values by QR iteration: (what is left of a, values, U, V^H, info); modes as for gesdd."""
    (vectors, full), routine = mode(i), lapack("gesvd", a)

    def one(m: np.ndarray) -> tuple[np.ndarray, ...]:
        u, values, vt, info = routine(m, compute_uv=int(vectors), full_matrices=int(full))
        if not vectors:  # unspecified outputs
            u = vt = np.zeros((), m.dtype)
        return m, values, u, vt, np.asarray(info)

    return batched(i, one, a)


@evaluates(calls.GEQP3)
def geqp3(i: Instruction, a: np.ndarray, pivots: np.ndarray) -> Any:
    """QR with column pivoting: (R with the reflectors below, columns counted from 1, the reflectors' factors).

    Columns whose number in ``pivots`` is not 0 come first. SciPy's wrapper leaves all free: those are done apart.
    """
    results = [np.zeros(s.dims, s.element_type.dtype) for _, s in i.shape.leaves()]
    for at in np.ndindex(*a.shape[:-2]):
        for result, found in zip(results, _pivoted(a[at], pivots[at]), strict=True):
            result[at] = found
    return tuple(results)


def _pivoted(a: np.ndarray, pivots: np.ndarray) -> tuple[np.ndarray, ...]:
    order, first = list(range(1, a.shape[1] + 1)), 0
    for n in np.flatnonzero(pivots).tolist():
        order[n], order[first] = order[first], order[n]
        first += 1
    r = a[:, [n - 1 for n in order]]
    if not first:
        return lapack("geqp3", a)(r)[:3]
    count = min(first, *a.shape)
    r[:, :count], factors, *_ = lapack("geqrf", a)(r[:, :count])
    if count < a.shape[1]:
        is_complex, room = a.dtype.kind == "c", 64 * max(a.shape)
        multiply = lapack("unmqr" if is_complex else "ormqr", a)
        r[:, count:] = multiply("L", "C" if is_complex else "T", r[:, :count], factors, r[:, count:], room)[0]
    if count == min(a.shape):
        return r, np.array(order, np.int32), factors
    rest, found, more, *_ = lapack("geqp3", a)(r[count:, count:])
    r[:count, count:] = r[:count, count:][:, found - 1]
    r[count:, count:] = rest
    return (
        r,
        np.array([*order[:count], *(order[count + n - 1] for n in found)], np.int32),
        np.concatenate([factors, more]),
    )


@evaluates(calls.ORMQR)
def ormqr(i: Instruction, a: np.ndarray, factors: np.ndarray, c: np.ndarray) -> np.ndarray:
    """``Q c``, ``Q^H c``, ``c Q`` or ``c Q^H``, Q given by its reflectors."""
    is_complex, (left, is_adjoint) = a.dtype.kind == "c", side_of_q(i)
    routine, side = lapack("unmqr" if is_complex else "ormqr", a), "L" if left else "R"
    transpose = ("C" if is_complex else "T") if is_adjoint else "N"
    result = np.zeros(i.shape.dims, i.shape.element_type.dtype)
    room = 64 * max(1, *c.shape[-2:])
    for at in np.ndindex(*a.shape[:-2]):
        result[at] = routine(side, transpose, a[at], factors[at], c[at], room)[0]
    return result


@evaluates(calls.GTSV)
def gtsv(i: Instruction, lower: np.ndarray, diagonal: np.ndarray, upper: np.ndarray, b: np.ndarray) -> Any:
    """A tridiagonal system: (what is left of the three diagonals, solutions, info)."""
    routine = lapack("gtsv", b)
    low, main, high, x = lower.copy(), diagonal.copy(), upper.copy(), b.copy()
    info = np.zeros(b.shape[:-2], np.int32)
    # SciPy takes no empty arrays: of a single row it gets elements outside the matrix, which it leaves as they are
    below, above = (slice(1, None), slice(-1)) if b.shape[-2] > 1 else (slice(1), slice(1))
    for at in np.ndindex(*b.shape[:-2]):
        found = routine(lower[at][below], diagonal[at], upper[at][above], b[at])
        low[at][below], main[at], high[at][above], x[at], info[at] = found
    return low, main, high, x, info
