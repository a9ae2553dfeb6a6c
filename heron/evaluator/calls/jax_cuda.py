"""Custom calls that only JAX's programs for CUDA have: what its own kernels and cuSOLVER's rarer routines compute."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heron.evaluator.calls.lapack import batched, lapack
from heron.evaluator.calls.table import evaluates
from heron.hlo.calls import lapack as calls
from heron.hlo.calls.lapack import options
from heron.hlo.meaning.bit_generators import threefry
from heron.hlo.meaning.numeric import settle

if TYPE_CHECKING:
    from heron.hlo.ir.instruction import Instruction


@evaluates(calls.THREEFRY)
def threefry_words(
    i: Instruction, k1: np.ndarray, k2: np.ndarray, x1: np.ndarray, x2: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Two words of the generator for each pair of counters, each under a key of its own."""
    return threefry((x1, x2), (k1, k2))


@evaluates(calls.CHOLESKY_UPDATE)
def cholesky_update(i: Instruction, r: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, ...]:
    """The upper factor of ``r^T r + w w^T`` by one rotation a row, and what is left of w."""
    r, w = r.astype(np.float64), w.astype(np.float64)
    for k in range(len(w)):
        length = np.hypot(r[k, k], w[k])
        c, s = (r[k, k] / length, w[k] / length) if length else (1.0, 0.0)
        r[k], w = c * r[k] + s * w, c * w - s * r[k]
    return tuple(settle(v, s.element_type) for v, s in zip((r, w), i.shape.tuple_shapes or (), strict=True))


@evaluates(calls.SYRK)
def syrk(i: Instruction, a: np.ndarray, c: np.ndarray, alpha: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """``alpha a a^T + beta c``, or with a^T in the place of a."""
    wide = a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)
    turned = wide.swapaxes(-1, -2)
    left, right = (turned, wide) if options(i).get("transpose", False) else (wide, turned)
    return settle(alpha * (left @ right) + beta * c, i.shape.element_type)


@evaluates(calls.GTSV2)
def tridiagonal(i: Instruction, lower: np.ndarray, main: np.ndarray, upper: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A tridiagonal system; the first of `lower` and the last of `upper` are unused."""
    routine, result = lapack("gtsv", b), np.empty_like(b)
    for at in np.ndindex(*b.shape[:-2]):
        result[at] = routine(lower[at][1:], main[at], upper[at][:-1], b[at])[3]
    return result


@evaluates(calls.CSRLSVQR)
def sparse(i: Instruction, data: np.ndarray, columns: np.ndarray, starts: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A sparse system by rows: the values, their columns, and where each row begins."""
    rows = np.repeat(np.arange(len(b)), np.diff(starts))
    matrix = np.zeros((len(b), len(b)), data.dtype)
    np.add.at(matrix, (rows, columns[: len(rows)]), data[: len(rows)])
    return np.linalg.solve(matrix, b).astype(i.shape.element_type.dtype)


@evaluates(calls.CUSOLVER_GEEV)
def geev(i: Instruction, a: np.ndarray) -> Any:
    """(what is left of a, complex eigenvalues, left and right eigenvectors, info).

    Of a real matrix a conjugate pair of vectors is two columns: the real part, the imaginary part.
    """
    wanted, routine = [bool(options(i).get(side, True)) for side in ("left", "right")], lapack("geev", a)

    def one(m: np.ndarray) -> tuple[np.ndarray, ...]:
        *values, left, right, info = routine(m, compute_vl=int(wanted[0]), compute_vr=int(wanted[1]))
        whole = values[0] if len(values) == 1 else values[0] + 1j * values[1]
        vectors = [v if w else np.zeros_like(m) for v, w in zip((left, right), wanted, strict=True)]
        return m, whole, *vectors, np.asarray(info)

    return batched(i, one, a)
