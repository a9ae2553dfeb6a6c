"""Custom calls the evaluator knows: LAPACK and cuSOLVER factorisations as JAX calls them, and a few helpers.

LAPACK's own routines run in the program's precision, so that what LAPACK leaves open (signs of eigenvectors, order of
pivots) comes out as it does in XLA:CPU, which calls the same ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from heron.hlo.calls import size_checks
from heron.hlo.calls.markers import MARKERS
from heron.hlo.calls.solvers import PIVOTS, is_lower, letter, options
from heron.hlo.meaning import linalg, sorting
from heron.hlo.meaning.dynamic_size import trimmed, within_bound
from heron.hlo.meaning.scipy_part import scipy_part

if TYPE_CHECKING:
    from heron.hlo.ir.instruction import Instruction

Function = Callable[..., Any]
_TARGETS: dict[str, Function] = {}


def target(*names: str, with_evaluator: bool = False) -> Callable[[Function], Function]:
    """Register a function under custom-call targets; ``?`` stands for LAPACK's type letter.

    It gets the instruction and its operands' values, before them the evaluator where it needs that.
    """

    def register(function: Function) -> Function:
        called = function if with_evaluator else lambda _, *given: function(*given)
        for name in names:
            for prefix in "sdcz" if "?" in name else "-":
                _TARGETS[name.replace("?", prefix)] = called
        return function

    return register


def find(name: str) -> Function | None:
    """The function of that target, of the evaluator, the instruction and its operands' values; or None."""
    return _TARGETS.get(name)


def known() -> list[str]:
    """All targets known."""
    return sorted(_TARGETS)


def lapack(name: str, a: np.ndarray) -> Any:
    """The routine for arrays like `a`."""
    return scipy_part("linalg").get_lapack_funcs(name, (a,))


def batched(i: Instruction, function: Callable[[np.ndarray], tuple[np.ndarray, ...]], a: np.ndarray) -> Any:
    """`function` on each matrix, its results stacked and cast as the instruction's result says."""
    shapes = i.shape.tuple_shapes or (i.shape,)
    results = [np.zeros(s.dims, s.element_type.dtype) for s in shapes]
    for at in np.ndindex(*a.shape[:-2]):
        for result, value in zip(results, function(a[at]), strict=True):
            result[at] = value
    return tuple(results) if i.shape.is_tuple else results[0]


@target("lapack_?potrf_ffi", "cusolver_potrf_ffi")
def potrf(i: Instruction, a: np.ndarray) -> tuple[np.ndarray, ...]:
    """Cholesky: (factor, info). The other triangle of the factor is the input's, as LAPACK leaves it."""
    lower = is_lower(options(i))
    factor, info = linalg.cholesky(a, lower)
    other = np.triu(np.ones(a.shape[-2:], bool), 1) if lower else np.tril(np.ones(a.shape[-2:], bool), -1)
    return np.where(other, a, factor), info


@target("lapack_?trsm_ffi")
def trsm(i: Instruction, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Triangular solve."""
    o = options(i)
    transpose = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}[letter(o, "trans_x", "N")]
    left, unit = letter(o, "side", "L") == "L", letter(o, "diag", "N") == "U"
    return linalg.triangular_solve(a, b, left, letter(o, "uplo", "L") == "L", transpose, unit)


@target("lapack_?getrf_ffi", "cusolver_getrf_ffi")
def getrf(i: Instruction, a: np.ndarray) -> Any:
    """LU with partial pivoting: (factors, pivots counted from 1, info)."""
    routine = lapack("getrf", a)

    def one(m: np.ndarray) -> tuple[np.ndarray, ...]:
        factors, pivots, info = routine(m)
        return factors, pivots + 1, np.asarray(info)

    return batched(i, one, a)


@target("lapack_?geqrf_ffi", "cusolver_geqrf_ffi")
def geqrf(i: Instruction, a: np.ndarray) -> Any:
    """QR: (R with the Householder vectors below, their factors)."""
    routine = lapack("geqrf", a)
    return batched(i, lambda m: routine(m)[:2], a)


@target("lapack_?orgqr_ffi", "lapack_?ungqr_ffi", "cusolver_orgqr_ffi")
def orgqr(i: Instruction, a: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """Q from its Householder vectors."""
    routine = lapack("ungqr" if a.dtype.kind == "c" else "orgqr", a)
    result = np.zeros(i.shape.dims, i.shape.element_type.dtype)
    for at in np.ndindex(*a.shape[:-2]):
        result[at] = routine(a[at], tau[at])[0]
    return result


@target("lapack_?syevd_ffi", "lapack_?heevd_ffi", "cusolver_syevd_ffi")
def syevd(i: Instruction, a: np.ndarray) -> Any:
    """Eigenvectors (columns) and ascending eigenvalues of a Hermitian matrix: (vectors, values, info)."""
    o = options(i)
    routine = lapack("heevd" if a.dtype.kind == "c" else "syevd", a)
    vectors_wanted = letter(o, "mode", "V") == "V"

    def one(m: np.ndarray) -> tuple[np.ndarray, ...]:
        values, vectors, info = routine(m, compute_v=int(vectors_wanted), lower=int(is_lower(o)))
        return vectors, values, np.asarray(info)

    return batched(i, one, a)


@target("lapack_?gesdd_ffi")
def gesdd(i: Instruction, a: np.ndarray) -> Any:
    """Singular values: (what is left of a, values, U, V^H, info); mode N: values alone, S: thin, A: full."""
    mode = letter(options(i), "mode", "A")
    return batched(i, lambda m: _svd(m, mode != "N", mode == "A", i.shape.tuple_shapes or ()), a)


@target("cusolver_gesvdj_ffi", "cusolver_gesvd_ffi", "cusolver_gesvdp_ffi")
def gesvd(i: Instruction, a: np.ndarray) -> Any:
    """Singular values: (what is left of a, values, U, V (gesvd: V^H), info)."""
    o = options(i)
    shapes = i.shape.tuple_shapes or ()
    wanted = o.get("compute_uv", True)
    adjoint = i.custom_call_target == "cusolver_gesvd_ffi"

    def one(m: np.ndarray) -> tuple[np.ndarray, ...]:
        left, values, u, vt, info = _svd(m, wanted, o.get("full_matrices", True), shapes)
        return left, values, u, vt if adjoint or not wanted else vt.conj().T, info

    return batched(i, one, a)


def _svd(m: np.ndarray, wanted: bool, full: bool, shapes: tuple[Any, ...]) -> tuple[np.ndarray, ...]:
    u, values, vt, info = lapack("gesdd", m)(m, compute_uv=int(wanted), full_matrices=int(full))
    if not wanted:  # unspecified outputs
        u, vt = (np.zeros(s.dims[-2:], m.dtype) for s in shapes[2:4])
    return m, values, u, vt, np.asarray(info)


@target(PIVOTS, "LuPivotsToPermutation")
def pivots_to_permutation(i: Instruction, pivots: np.ndarray) -> np.ndarray:
    """The permutation a sequence of row swaps (counted from 0) amounts to."""
    result = np.broadcast_to(np.arange(i.shape.dims[-1], dtype=np.int32), i.shape.dims).copy()
    for at in np.ndindex(*pivots.shape[:-1]):
        line = result[at]
        for k, p in enumerate(pivots[at]):
            line[k], line[p] = line[p], line[k]
    return result


@target("TopK")
def top_k(i: Instruction, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest elements of each line and their positions."""
    return sorting.top_k(x, i.operands[0].shape.element_type, i.shape.at((0,)).dims[-1], True)


@target("SliceToDynamic")
def slice_to_dynamic(i: Instruction, x: np.ndarray, *sizes: np.ndarray) -> np.ndarray:
    """The first elements: a size for each dimension, known at run time."""
    bounds = i.shape.dims
    return trimmed(x, [within_bound(int(n), bounds[d], d) for d, n in enumerate(sizes)])


@target("PadToStatic")
def pad_to_static(i: Instruction, x: np.ndarray) -> tuple[np.ndarray, ...]:
    """(the array filled up to its bound with zeros, the size of each dimension)."""
    return trimmed(x, i.shape.at((0,)).dims), *(np.array(n, np.int32) for n in x.shape)


@target(size_checks.TARGET)
def check_sizes(i: Instruction, failed: np.ndarray, left: np.ndarray, right: np.ndarray) -> tuple[()]:
    """Nothing, or the error of the condition on sizes that did not hold."""
    checks = size_checks.read(str(i.extras.get("backend_config", "")))
    size_checks.need_none_failed(checks, int(failed), int(left), int(right))
    return ()


@target(*MARKERS)
def marker(i: Instruction, *operands: Any) -> Any:
    """An annotation: where or how to keep operands; the value is the operand itself, or nothing."""
    if not any(True for _ in i.shape.leaves()):
        return ()
    return operands[0] if len(operands) == 1 and not _wraps(i) else operands


def _wraps(i: Instruction) -> bool:
    """Whether the value is a tuple of the operand."""
    return i.shape.is_tuple and not i.operands[0].shape.is_tuple
