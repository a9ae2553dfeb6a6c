"""Dense linear algebra by the LAPACK and BLAS that SciPy ships, on batches of matrices in the arrays' own precision.

A routine reads a whole matrix before it writes the results of that matrix, so a result may lie where an operand lies.
``info`` is 0 or says what failed, as LAPACK has it. Results nobody asked for are zero.
Source: https://netlib.org/lapack/explore-html
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from heron.hlo.meaning.scipy_part import scipy_part
from heron.once import once
from heron.records import dataclass


def lapack(name: str, like: np.ndarray) -> Any:
    """The LAPACK routine for arrays like that one."""
    return _routine("get_lapack_funcs", name, like.dtype)


def blas(name: str, like: np.ndarray) -> Any:
    """The BLAS routine for arrays like that one."""
    return _routine("get_blas_funcs", name, like.dtype)


@once
def _routine(find: str, name: str, dtype: np.dtype) -> Any:
    return getattr(scipy_part("linalg"), find)(name, dtype=dtype)


def for_kind(real: str, complex_: str, like: np.ndarray) -> Any:
    """The routine by its name for real or for complex arrays."""
    return lapack(complex_ if like.dtype.kind == "c" else real, like)


def matrices(a: np.ndarray) -> Iterator[tuple[int, ...]]:
    """The index of each matrix of a batch; none when matrices are empty, which LAPACK does not take."""
    if not a.size:
        return
    if a.ndim == 2:
        yield ()
        return
    yield from np.ndindex(*a.shape[:-2])


def in_precision(x: np.ndarray) -> np.ndarray:
    """`x` in a type LAPACK has: 16-bit floats become f32."""
    return x.astype(np.float32) if x.dtype in (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)) else x


def columns(x: np.ndarray) -> tuple[np.ndarray, bool]:
    """`x` or its transpose, whichever LAPACK can work on where it lies (columns first), and whether it is transposed.

    An array in neither order is given back as it is, and copied by whoever calls LAPACK.
    """
    is_rows = x.flags.c_contiguous and not x.flags.f_contiguous
    return (x.T, True) if is_rows else (x, False)


def factor(a: np.ndarray, lower: bool, clean: bool) -> int:
    """Put the Cholesky factor of `a` in its place; LAPACK's info. The transpose of a lower factor is the upper one of
    the transpose, so rows are no trouble.
    """
    stored, flipped = columns(a)
    result, info = lapack("potrf", a)(stored, lower=lower != flipped, clean=clean, overwrite_a=True)
    if result.ctypes.data != stored.ctypes.data:
        stored[...] = result
    if info == 0 and np.isnan(a[-1, -1]):  # OpenBLAS takes a NaN for a pivot, LAPACK's own code does not
        return int(np.isnan(np.diagonal(a)).argmax()) + 1
    return info


def put(x: np.ndarray, out: np.ndarray) -> None:
    """Copy unless it is there already."""
    if x.ctypes.data != out.ctypes.data or x.strides != out.strides:
        out[...] = x


@dataclass(frozen=True, slots=True)
class Cholesky:
    """The factor in the named triangle, NaN where the matrix is not positive definite; the other triangle is zero."""

    lower: bool

    def __call__(self, a: np.ndarray, out: np.ndarray) -> None:
        wide = in_precision(a)
        target = out if wide is a else wide
        put(wide, target)
        for at in matrices(a):
            if factor(target[at], self.lower, clean=True):
                target[at] = np.nan
        put(target, out)


@dataclass(frozen=True, slots=True)
class Potrf:
    """Cholesky as LAPACK leaves it: the other triangle is the operand's; (a) → factor, info."""

    lower: bool

    def __call__(self, a: np.ndarray, out: np.ndarray, info: np.ndarray) -> None:
        info[...] = 0
        put(a, out)
        for at in matrices(a):
            info[at] = factor(out[at], self.lower, clean=False)


@dataclass(frozen=True, slots=True)
class TriangularSolve:
    """x with ``op(a) @ x == b`` (``left``) or ``x @ op(a) == b``; ``transpose``: N, T or C. (a, b) → x."""

    left: bool
    lower: bool
    transpose: str
    unit_diagonal: bool

    def __call__(self, a: np.ndarray, b: np.ndarray, x: np.ndarray) -> None:
        wide = in_precision(a)
        target = x if wide is a else in_precision(b)
        if np.may_share_memory(wide, target):  # x lies where a lies, which is read to the end
            wide = wide.copy(order="K")
        put(b, target)
        solve = blas("trsm", target)
        for at in matrices(b):
            # op(a) @ x == b is x^T @ op(a)^T == b^T, for whichever of the two lies in columns
            rights, flip = columns(target[at])
            factors, transposed = columns(wide[at])
            how = self.transpose
            if transposed != flip:
                how = "T" if how == "N" else "N"
                factors = factors.conj() if self.transpose == "C" else factors
            result = solve(
                1,
                factors,
                rights,
                side=int(self.left == flip),
                lower=int(self.lower != transposed),
                trans_a="NTC".index(how),
                diag=int(self.unit_diagonal),
                overwrite_b=True,
            )
            put(result, rights)
        put(target, x)


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
class Gtsv:
    """A tridiagonal system: (lower, diagonal, upper, b) → what is left of the diagonals, x, info. The first element of
    the lower diagonal and the last one of the upper are outside the matrix."""

    def __call__(self, *arrays: np.ndarray) -> None:
        for given, result in zip(arrays[:4], arrays[4:], strict=False):
            put(given, result)
        low, main, high, x, info = arrays[4:]
        info[...] = 0
        routine = lapack("gtsv", x)
        # SciPy takes no empty arrays: of a single row it gets elements outside the matrix
        below, above = (slice(1, None), slice(-1)) if x.shape[-2] > 1 else (slice(1), slice(1))
        for at in matrices(x):
            found = routine(low[at][below], main[at], high[at][above], x[at])
            low[at][below], main[at], high[at][above], x[at], info[at] = found


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
