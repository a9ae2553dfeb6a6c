"""Dense linear algebra: the ops HLO has and JAX's custom calls, by LAPACK; on the simulated GPU in cuSOLVER's role."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from heron.backends.calls import lapack_steps
from heron.backends.calls.attention import attention_call
from heron.backends.calls.convolution import convolution_call
from heron.backends.calls.gemm import matmul
from heron.backends.calls.host import Routine, call, is_by_columns, library_call
from heron.backends.calls.norm import norm_call
from heron.errors import HeronError
from heron.hlo.calls import attention, convolution, gemm, norm, solvers, triangular
from heron.hlo.calls.solvers import is_lower, letter
from heron.hlo.ir.instruction import Instruction
from heron.runtime.cuda.libraries.cublas import TriangularSolve
from heron.runtime.cuda.libraries.cusolver import Factorization
from heron.runtime.host import lapack
from heron.runtime.thunks import LAPACK, LapackThunk, Thunk
from heron.trace import Decision

if TYPE_CHECKING:
    from heron.backends.lower import Lowering

_TRANSPOSES = {None: "N", "NO_TRANSPOSE": "N", "TRANSPOSE": "T", "ADJOINT": "C"}


def cholesky(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """The HLO op: other triangle zero."""
    return _call(lowering, i, lapack.Cholesky(i.lower), "cholesky")


def triangular_solve(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """The HLO op."""
    routine = lapack.TriangularSolve(i.left_side, i.lower, _TRANSPOSES[i.transpose_a], i.unit_diagonal)
    return _call(lowering, i, routine, "trsm")


def knows(target: str) -> bool:
    """Whether a custom call's target is a routine of a library here."""
    return target in _CALLS or solvers.routine(target) in _ROUTINES


def custom_call(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """A routine by the name of its target. Raises GEN011 for a target not known."""
    if i.custom_call_target in gemm.TARGETS:
        return matmul(lowering, i)
    if i.custom_call_target in convolution.TARGETS:
        return convolution_call(lowering, i)
    if i.custom_call_target in attention.TARGETS:
        return attention_call(lowering, i)
    if i.custom_call_target == norm.TARGET:
        return norm_call(lowering, i)
    if i.custom_call_target == triangular.TARGET:
        t = triangular.read(i)
        routine = lapack.TriangularSolve(t.left, t.lower, _TRANSPOSES[t.transpose], t.unit_diagonal)
        return _call(lowering, i, Scratched(routine), "trsm")
    make = _ROUTINES.get(solvers.routine(i.custom_call_target))
    if make is None:
        raise HeronError(
            "GEN011",
            f"unsupported custom call target '{i.custom_call_target}'",
            where=str(i),
            hint="known: " + ", ".join(_ROUTINES) + " (of LAPACK and cuSOLVER, as JAX names them)",
        )
    return _call(lowering, i, make(solvers.options(i)), solvers.routine(i.custom_call_target))


@dataclass(frozen=True, slots=True)
class Scratched:
    """A routine on all arrays but the last, which is scratch memory of a library."""

    routine: Routine

    def __call__(self, *arrays: np.ndarray) -> None:
        self.routine(*arrays[:-1])


def _call(lowering: Lowering, i: Instruction, routine: Any, name: str) -> list[Thunk]:
    """By LAPACK on the CPU, by cuBLAS or cuSOLVER on a GPU, where they have the routine."""
    if lowering.target.kind == "cpu":
        return _native(lowering, i, routine)
    columns = is_by_columns(i.operands[0].shape)
    match routine.routine if isinstance(routine, Scratched) else routine:
        case lapack.TriangularSolve() as solve:
            given = solve.left, solve.lower, solve.transpose, solve.unit_diagonal, columns
            return library_call(lowering, i, lambda arrays: TriangularSolve(arrays, *given), routine)
        case lapack.Potrf() as factor:
            facts = {"lower": factor.lower}
        case lapack.Syevd() as factor:
            facts = {"lower": factor.lower, "vectors": factor.vectors}
        case lapack.Svd() as factor:
            facts = {"vectors": factor.vectors, "full": factor.full}
        case lapack.Getrf() | lapack.Geqrf() | lapack.Orgqr():
            facts = {}
        case _:
            return call(lowering, i, routine, "cusolver")
    kind, operands = _KINDS.get(name, name), len(i.operands)
    return library_call(
        lowering, i, lambda arrays: Factorization(arrays, kind, operands, columns=columns, **facts), routine
    )


def _native(lowering: Lowering, i: Instruction, routine: Any) -> list[Thunk]:
    """By calls of LAPACK from the program where its routines take the arrays as they lie, or else through Python."""
    leaves = [(o, index, leaf) for o in (*i.operands, i) for index, leaf in o.shape.leaves() if leaf.is_array]
    slices = tuple(lowering.slice(o, index) for o, index, _ in leaves)
    shapes = [leaf for *_, leaf in leaves]
    try:
        steps = lapack_steps.steps_for(routine, shapes, slices[0] == slices[-1])
    except lapack_steps.Refused as why:
        lowering.trace.decide(Decision(False, str(why), "lapack", i.name, "native call"))
        return call(lowering, i, routine, LAPACK)
    batch = lapack_steps.batch_of(shapes[0])
    return [LapackThunk(steps, slices, tuple(s.byte_size // batch for s in shapes), batch, LAPACK, i.name)]


#: what cuSOLVER calls what others call otherwise
_KINDS = {"ungqr": "orgqr", "heevd": "syevd", "gesdd": "gesvd", "gesvdp": "gesvdj"}


def _trsm(o: dict[str, Any]) -> Routine:
    left, lower = letter(o, "side", "L") == "L", letter(o, "uplo", "L") == "L"
    return lapack.TriangularSolve(left, lower, letter(o, "trans_x", "N"), letter(o, "diag", "N") == "U")


def _gesdd(o: dict[str, Any]) -> Routine:
    """LAPACK's mode (N: values alone, S: thin, A: full) or cuSOLVER's flags."""
    if "full_matrices" in o:
        return lapack.Svd(o.get("compute_uv", True), o["full_matrices"])
    mode = letter(o, "mode", "A")
    return lapack.Svd(mode != "N", mode == "A")


def _gesvd(o: dict[str, Any]) -> Routine:
    """With ``transposed`` cuSOLVER works on a^T, so that U and V^H change places."""
    right = "swapped" if o.get("transposed") else "vh"
    return lapack.Svd(o.get("compute_uv", True), o.get("full_matrices", True), right)


def _jacobi(o: dict[str, Any]) -> Routine:
    return lapack.Svd(o.get("compute_uv", True), o.get("full_matrices", True), "v")


#: XLA:GPU's own calls of libraries
_CALLS = frozenset((*gemm.TARGETS, *convolution.TARGETS, *attention.TARGETS, norm.TARGET, triangular.TARGET))

_ROUTINES: dict[str, Callable[[dict[str, Any]], Routine]] = {
    "potrf": lambda o: lapack.Potrf(is_lower(o)),
    "trsm": _trsm,
    "getrf": lambda _: lapack.Getrf(),
    "geqrf": lambda _: lapack.Geqrf(),
    "orgqr": lambda _: lapack.Orgqr(),
    "ungqr": lambda _: lapack.Orgqr(),
    "syevd": lambda o: lapack.Syevd(is_lower(o), letter(o, "mode", "V") == "V"),
    "heevd": lambda o: lapack.Syevd(is_lower(o), letter(o, "mode", "V") == "V"),
    "gesdd": _gesdd,
    "gesvd": _gesvd,
    "gesvdj": _jacobi,
    "gesvdp": _jacobi,
    solvers.PIVOTS: lambda _: lapack.PivotsToPermutation(),
}
