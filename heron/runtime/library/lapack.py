"""Dense linear algebra by the LAPACK and BLAS that SciPy ships, on batches of matrices in the arrays' own precision.

A routine reads a whole matrix before it writes the results of that matrix, so a result may lie where an operand lies.
``info`` is 0 or says what failed, as LAPACK has it. Results nobody asked for are zero.
Source: https://netlib.org/lapack/explore-html
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np


def lapack(name: str, like: np.ndarray) -> Any:
    """The LAPACK routine for arrays like that one."""
    from scipy.linalg import get_lapack_funcs  # slow to import, seldom needed

    return get_lapack_funcs(name, (like,))


def for_kind(real: str, complex_: str, like: np.ndarray) -> Any:
    """The routine by its name for real or for complex arrays."""
    return lapack(complex_ if like.dtype.kind == "c" else real, like)


def matrices(a: np.ndarray) -> Iterator[tuple[int, ...]]:
    """The index of each matrix of a batch; none when matrices are empty, which LAPACK does not take."""
    if a.size:
        yield from np.ndindex(*a.shape[:-2])


def in_precision(x: np.ndarray) -> np.ndarray:
    """`x` in a type LAPACK has: 16-bit floats become f32."""
    return x.astype(np.float32) if x.dtype in (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)) else x


@dataclass(frozen=True, slots=True)
class Cholesky:
    """The factor in the named triangle, NaN where the matrix is not positive definite; the other triangle is zero."""

    lower: bool

    def __call__(self, a: np.ndarray, out: np.ndarray) -> None:
        wide = in_precision(a)
        routine = lapack("potrf", wide)
        for at in matrices(a):
            factor, info = routine(wide[at], lower=self.lower, clean=True)
            out[at] = np.nan if info else factor


@dataclass(frozen=True, slots=True)
class Potrf:
    """Cholesky as LAPACK leaves it: the other triangle is the operand's; (a) → factor, info."""

    lower: bool

    def __call__(self, a: np.ndarray, factor: np.ndarray, info: np.ndarray) -> None:
        info[...] = 0
        routine = lapack("potrf", a)
        for at in matrices(a):
            factor[at], info[at] = routine(a[at], lower=self.lower, clean=False)


@dataclass(frozen=True, slots=True)
class TriangularSolve:
    """x with ``op(a) @ x == b`` (``left``) or ``x @ op(a) == b``; ``transpose``: N, T or C. (a, b) → x."""

    left: bool
    lower: bool
    transpose: str
    unit_diagonal: bool

    def __call__(self, a: np.ndarray, b: np.ndarray, x: np.ndarray) -> None:
        from scipy.linalg import get_blas_funcs

        wide, rights = in_precision(a), in_precision(b)
        solve: Any = get_blas_funcs("trsm", (wide, rights))
        flags = dict(
            side=int(not self.left),
            lower=int(self.lower),
            trans_a="NTC".index(self.transpose),
            diag=int(self.unit_diagonal),
        )
        for at in matrices(b):
            x[at] = solve(1, wide[at], rights[at], **flags)


@dataclass(frozen=True, slots=True)
class Getrf:
    """LU with partial pivoting: (a) → factors, pivots counted from 1, info."""

    def __call__(self, a: np.ndarray, factors: np.ndarray, pivots: np.ndarray, info: np.ndarray) -> None:
        info[...] = 0
        routine = lapack("getrf", a)
        for at in matrices(a):
            factors[at], rows, info[at] = routine(a[at])
            pivots[at] = rows + 1


@dataclass(frozen=True, slots=True)
class Geqrf:
    """QR: (a) → R with the Householder vectors below it, their factors."""

    def __call__(self, a: np.ndarray, r: np.ndarray, tau: np.ndarray) -> None:
        routine = lapack("geqrf", a)
        for at in matrices(a):
            r[at], tau[at] = routine(a[at])[:2]


@dataclass(frozen=True, slots=True)
class Orgqr:
    """Q from its Householder vectors: (vectors, factors) → q."""

    def __call__(self, vectors: np.ndarray, tau: np.ndarray, q: np.ndarray) -> None:
        routine = for_kind("orgqr", "ungqr", vectors)
        for at in matrices(vectors):
            q[at] = routine(vectors[at], tau[at])[0]


@dataclass(frozen=True, slots=True)
class Syevd:
    """Hermitian eigenvalues, ascending: (a) → eigenvectors in columns, eigenvalues, info."""

    lower: bool
    vectors: bool

    def __call__(self, a: np.ndarray, v: np.ndarray, w: np.ndarray, info: np.ndarray) -> None:
        info[...] = 0
        routine = for_kind("syevd", "heevd", a)
        for at in matrices(a):
            w[at], vectors, info[at] = routine(a[at], compute_v=int(self.vectors), lower=int(self.lower))
            v[at] = vectors if self.vectors else 0


@dataclass(frozen=True, slots=True)
class Svd:
    """Singular values by gesdd: (a) → what is left of a, values, U, V^H, info.

    ``right`` says what stands in the place of V^H: "vh", "v" (Jacobi's way), or "swapped" for U and V^H in turn.
    """

    vectors: bool
    full: bool
    right: str = "vh"

    def __call__(
        self, a: np.ndarray, left: np.ndarray, values: np.ndarray, u: np.ndarray, v: np.ndarray, info: np.ndarray
    ) -> None:
        info[...] = 0
        u[...] = v[...] = 0
        routine = lapack("gesdd", a)
        for at in matrices(a):
            us, values[at], vh, info[at] = routine(a[at], compute_uv=int(self.vectors), full_matrices=int(self.full))
            left[at] = a[at]
            if not self.vectors:
                continue
            if self.right == "swapped":
                u[at], v[at] = vh, us
            else:
                u[at], v[at] = us, vh if self.right == "vh" else vh.conj().T


@dataclass(frozen=True, slots=True)
class PivotsToPermutation:
    """The permutation a sequence of row swaps (counted from 0) amounts to: (pivots) → permutation."""

    def __call__(self, pivots: np.ndarray, permutation: np.ndarray) -> None:
        permutation[...] = np.arange(permutation.shape[-1], dtype=permutation.dtype)
        for at in np.ndindex(*pivots.shape[:-1]):
            line = permutation[at]
            for k, p in enumerate(pivots[at]):
                line[k], line[p] = line[p], line[k]
