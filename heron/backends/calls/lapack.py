"""Dense linear algebra: the ops HLO has and JAX's custom calls, by LAPACK; on the simulated GPU in cuSOLVER's role."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from heron.backends.calls import by_evaluator, lapack_steps
from heron.backends.calls.host import Routine, call, is_by_columns, library_call
from heron.backends.calls.matrices import batch_of
from heron.hlo.calls import lapack as calls
from heron.hlo.calls import triangular
from heron.hlo.calls.form import results_of
from heron.hlo.calls.lapack import is_lower, letter
from heron.hlo.ir.instruction import Instruction
from heron.records import dataclass
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


def lower(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """A routine of LAPACK's or cuSOLVER's, or a triangular solve of cuBLAS's."""
    target = i.custom_call_target
    if target in calls.PIVOTS.targets:
        if lowering.target.is_gpu:
            return lowering.alone(i)
        return _call(lowering, i, lapack.PivotsToPermutation(), "pivots")
    if target == triangular.TARGET:
        t = triangular.read(i)
        routine = lapack.TriangularSolve(t.left, t.lower, _TRANSPOSES[t.transpose], t.unit_diagonal)
        return _call(lowering, i, Scratched(routine) if len(results_of(i)) > 1 else routine, "trsm")
    name = calls.routine(target)
    return _call(lowering, i, _ROUTINES[name](i), name)


@dataclass(frozen=True, slots=True)
class Scratched:
    """A routine on all arrays but the last, which is scratch memory of a library."""

    routine: Routine

    def __call__(self, *arrays: np.ndarray) -> None:
        self.routine(*arrays[:-1])


def _call(lowering: Lowering, i: Instruction, routine: Any, name: str) -> list[Thunk]:
    """By LAPACK on the CPU, by cuBLAS or cuSOLVER on a GPU, where they have the routine."""
    if not lowering.target.is_gpu:
        return _native(lowering, i, routine)
    from heron.runtime.cuda.libraries.cublas import TriangularSolve  # with the libraries of GPUs, for those alone
    from heron.runtime.cuda.libraries.cusolver import Factorization

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
    """Calls of LAPACK from the native program where its routines take the arrays' layouts, else through Python."""
    leaves = [(o, index, leaf) for o in (*i.operands, i) for index, leaf in o.shape.leaves() if leaf.is_array]
    slices = tuple(lowering.slice(o, index) for o, index, _ in leaves)
    shapes = [leaf for *_, leaf in leaves]
    try:
        steps = lapack_steps.steps_for(routine, shapes, slices[0] == slices[-1])
    except lapack_steps.Refused as why:
        lowering.trace.decide(Decision(False, str(why), "lapack", i.name, "native call"))
        has_other = callable(routine)
        return call(lowering, i, cast(Routine, routine), LAPACK) if has_other else by_evaluator.lower(lowering, i)
    batch = batch_of(shapes)
    return [LapackThunk(steps, slices, tuple(s.byte_size // batch for s in shapes), batch, LAPACK, i.name)]


#: what cuSOLVER calls what others call otherwise
_KINDS = {"ungqr": "orgqr", "heevd": "syevd", "gesdd": "gesvd", "gesvdp": "gesvdj"}


def _trsm(i: Instruction) -> Routine:
    o = calls.options(i)
    lower, unit = letter(o, "uplo", "L") == "L", letter(o, "diag", "N") == "U"
    return lapack.TriangularSolve(calls.side_is_left(i), lower, letter(o, "trans_x", "N"), unit)


def _syevd(i: Instruction) -> Routine:
    o = calls.options(i)
    return lapack.Syevd(is_lower(o), letter(o, "mode", "V") == "V")


def _gesvd(i: Instruction) -> Routine:
    """With ``transposed`` cuSOLVER works on a^T, so that U and V^H change places."""
    return lapack.Svd(*calls.mode(i), "swapped" if calls.options(i).get("transposed") else "vh")


def _jacobi(i: Instruction) -> Routine:
    return lapack.Svd(*calls.mode(i), "v")


def _geev(i: Instruction) -> lapack_steps.Geev:
    return lapack_steps.Geev(*calls.wanted_sides(i))


def _sytrd(i: Instruction) -> lapack_steps.Sytrd:
    return lapack_steps.Sytrd(is_lower(calls.options(i)))


def _ormqr(i: Instruction) -> lapack_steps.Ormqr:
    return lapack_steps.Ormqr(*calls.side_of_q(i))


#: host routines, and routines that have none: the evaluator does them where arrays do not lie as LAPACK has them
_ROUTINES: dict[str, Callable[[Instruction], object]] = {
    "potrf": lambda i: lapack.Potrf(is_lower(calls.options(i))),
    "trsm": _trsm,
    "getrf": lambda _: lapack.Getrf(),
    "geqrf": lambda _: lapack.Geqrf(),
    "orgqr": lambda _: lapack.Orgqr(),
    "ungqr": lambda _: lapack.Orgqr(),
    "syevd": _syevd,
    "heevd": _syevd,
    "gtsv": lambda _: lapack.Gtsv(),
    "gesdd": lambda i: lapack.Svd(*calls.mode(i)),
    "gesvd": _gesvd,
    "gesvdj": _jacobi,
    "gesvdp": _jacobi,
    "geev": _geev,
    "cuhybrid_eig_real": _geev,
    "cuhybrid_eig_comp": _geev,
    "gees": lambda i: lapack_steps.Gees(letter(calls.options(i), "mode", "V") == "V"),
    "gehrd": lambda i: lapack_steps.Gehrd(*calls.block_of(i)),
    "sytrd": _sytrd,
    "hetrd": _sytrd,
    "geqp3": lambda _: lapack_steps.Geqp3(),
    "cuhybrid_geqp3": lambda _: lapack_steps.Geqp3(),
    "ormqr": _ormqr,
    "unmqr": _ormqr,
}
