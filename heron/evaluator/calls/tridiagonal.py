"""Tridiagonal systems that may be singular: small pivots are moved away from zero, so that nothing overflows.

What LAPACK's xLAGTF and xLAGTS do for inverse iteration, for several right-hand sides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heron.evaluator.calls.table import evaluates
from heron.hlo.calls import lapack as calls

if TYPE_CHECKING:
    from heron.hlo.ir.instruction import Instruction


@evaluates(calls.PERTURBED)
def solve(
    i: Instruction, lower: np.ndarray, diagonal: np.ndarray, upper: np.ndarray, b: np.ndarray
) -> np.ndarray | tuple[np.ndarray]:
    """Solutions [..., n, m]; diagonals are [..., n], the first of `lower` and the last of `upper` unused."""
    result = np.empty_like(b)
    for at in np.ndindex(*b.shape[:-2]):
        result[at] = _solve(lower[at], diagonal[at], upper[at], b[at]) if b.shape[-2] else b[at]
    return (result,) if i.shape.is_tuple else result


def _solve(lower: np.ndarray, diagonal: np.ndarray, upper: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Gaussian elimination, rows swapped where the one below is the larger for its size."""
    n, x = len(diagonal), b.copy()
    u = np.zeros((n, 3), b.dtype)  # the upper factor: its diagonal and the two above
    u[0, 0], u[0, 1] = diagonal[0], upper[0] if n > 1 else 0
    size = np.abs(u[0]).sum()
    for k in range(n - 1):
        below = np.array([lower[k + 1], diagonal[k + 1], upper[k + 1] if k < n - 2 else 0], b.dtype)
        below_size = np.abs(below).sum()
        ratio = np.abs(u[k, 0]) / size if u[k, 0] else 0
        if not below[0]:
            u[k + 1, :2], size = below[1:], below_size
        elif np.abs(below[0]) / below_size <= ratio:
            factor = below[0] / u[k, 0]
            u[k + 1, :2], size = (below[1] - factor * u[k, 1], below[2]), below_size
            x[k + 1] -= factor * x[k]
        else:
            factor = u[k, 0] / below[0]
            u[k + 1, :2] = u[k, 1] - factor * below[1], -factor * below[2]
            u[k] = below
            x[k], x[k + 1] = x[k + 1].copy(), x[k] - factor * x[k + 1]
            size = np.abs(u[k + 1]).sum()
    step = np.finfo(b.dtype).eps * np.abs(u).max()
    for k in reversed(range(n)):
        row = x[k].copy()
        for above in (1, 2):
            if k + above < n:
                row -= u[k, above] * x[k + above]
        pivot, row = _away_from_zero(u[k, 0], row, step)
        x[k] = row * (1 / pivot)
    return x


def _away_from_zero(pivot: Any, row: np.ndarray, step: Any) -> tuple[Any, np.ndarray]:
    """A pivot, and the row it divides, for which that does not overflow."""
    least = np.finfo(row.dtype).tiny
    step = np.copysign(max(step, least), pivot.real)
    largest = np.abs(row).max(initial=0)
    while np.abs(pivot) < 1:
        if pivot and np.abs(pivot) < least and largest * least <= np.abs(pivot):
            return pivot / least, row / least
        if np.abs(pivot) >= least and largest <= np.abs(pivot) / least:
            break
        pivot, step = pivot + step, step * 2
    return pivot, row
