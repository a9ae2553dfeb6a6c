"""The steps for small matrices, whose work is less than a call of LAPACK: see `codegen/native/small_matrices.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heron.backends.calls.matrices import Matrix, Scratch, brought, matrix_of, need_order
from heron.hlo.ir.shape import Shape
from heron.runtime.fortran import Factored, Move, Place, SmallCholesky, SmallLu, SmallSolve, Step, Steps, Strided
from heron.runtime.host import lapack

#: rows above which LAPACK is faster; of solves with more rows than the last, the multiplications
_CHOLESKY, _LU, _SOLVE_WORK, _SOLVE = 16, 32, 256, 4


def small_steps(routine: object, shapes: Sequence[Shape], in_place: bool) -> Steps | None:
    """The steps of a routine for one matrix of arrays of those shapes, operands then results, if it is small.

    Raises `Refused` for arrays that lie in no order for it.
    """
    plan = _PLANS.get(type(routine))
    return plan(routine, shapes, in_place) if plan is not None else None


def _bring(a: Matrix, out: Matrix, target: Place) -> Step:
    return brought(a, Place(0), target, a.by_columns != out.by_columns)


def _triangle(m: Matrix, place: Place, lower: bool) -> Strided:
    """A matrix, turned if that puts the triangle that is meant below the diagonal."""
    s = m.strided(place)
    return s if lower else Strided(place, s.across, s.down)


def _potrf(routine: lapack.Potrf, shapes: Sequence[Shape], in_place: bool) -> Steps | None:
    a, out = map(matrix_of, shapes[:2])
    if a.rows > _CHOLESKY:
        return None
    need_order(shapes[2])
    factor = SmallCholesky(_triangle(out, Place(1), routine.lower), a.rows, a.element, Place(2))
    return Steps((_bring(a, out, Place(1)), factor), 0, a.rows**3 // 6)


def _cholesky(routine: lapack.Cholesky, shapes: Sequence[Shape], in_place: bool) -> Steps | None:
    a, out = map(matrix_of, shapes)
    if a.rows > _CHOLESKY:
        return None
    scratch = Scratch()
    info = scratch.take(1)
    factor = SmallCholesky(_triangle(out, Place(1), routine.lower), a.rows, a.element, info)
    others = Factored(Place(1), a.rows, routine.lower == out.by_columns, a.element, info)
    return Steps((_bring(a, out, Place(1)), factor, others), scratch.size, a.rows**3 // 6)


def _getrf(routine: lapack.Getrf, shapes: Sequence[Shape], in_place: bool) -> Steps | None:
    a, out = map(matrix_of, shapes[:2])
    if max(a.rows, a.columns) > _LU:
        return None
    need_order(*shapes[2:])
    factor = SmallLu(out.strided(Place(1)), a.rows, a.columns, a.element, Place(2), Place(3))
    return Steps((_bring(a, out, Place(1)), factor), 0, a.rows * a.columns * min(a.rows, a.columns) // 3)


def _trsm(routine: lapack.TriangularSolve, shapes: Sequence[Shape], in_place: bool) -> Steps | None:
    """``x op(a) == b`` is ``op(a)^T x^T == b^T``."""
    a, b, x = map(matrix_of, shapes)
    columns = x.columns if routine.left else x.rows
    work = a.rows * a.rows * columns // 2
    if a.rows > _SOLVE and work > _SOLVE_WORK:
        return None
    scratch, factors, before = Scratch(), Place(0), []
    if in_place:  # x lies where a lies, which is read to the end
        factors = scratch.take(a.rows * a.columns, a.element.byte_size)
        before.append(Move(Place(0), factors, a.size))
    turned = (routine.transpose != "N") == routine.left
    solve = SmallSolve(
        _triangle(a, factors, not turned),
        _triangle(x, Place(2), routine.left),
        a.rows,
        columns,
        a.element,
        routine.lower != turned,
        routine.unit_diagonal,
        routine.transpose == "C" and a.element.is_complex,
    )
    bring = brought(b, Place(1), Place(2), b.by_columns != x.by_columns)
    return Steps((*before, bring, solve), scratch.size, work)


_PLANS: dict[type, Callable[..., Steps | None]] = {
    lapack.Potrf: _potrf,
    lapack.Cholesky: _cholesky,
    lapack.TriangularSolve: _trsm,
    lapack.Getrf: _getrf,
}
