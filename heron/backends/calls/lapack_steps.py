"""Routines of linear algebra as steps of the native program: which calls of BLAS and LAPACK a matrix needs.

The steps do to every matrix what the routine of `runtime/host/lapack.py` of the same name does, with no Python and
with as much workspace as LAPACK's blocked algorithms can use. A matrix stored by rows is the transpose of the one that
LAPACK sees: either that is as good, or a matrix is turned on its way in and out.
Source: https://netlib.org/lapack/explore-html
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heron.backends.calls.matrices import Matrix, Refused, Scratch, brought, matrix_of, need_order
from heron.backends.calls.small_steps import small_steps
from heron.hlo.ir.shape import Shape
from heron.runtime.cpu.blas import LIMIT, PREFIX
from heron.runtime.fortran import Call, Factored, Move, One, Pivots, Place, Step, Steps, Turn
from heron.runtime.host import lapack

#: columns that LAPACK's blocked algorithms take at a time, at most
_BLOCK = 64


def steps_for(routine: object, shapes: Sequence[Shape], in_place: bool) -> Steps:
    """The steps of a routine for one matrix of arrays of those shapes, operands then results. Raises `Refused`.

    ``in_place``: the last array is stored where the first one is.
    """
    plan = _PLANS.get(type(routine))
    if plan is None:
        raise Refused("it is not a single routine of LAPACK")
    if not all(s.num_elements for s in shapes):
        raise Refused("LAPACK takes no empty matrices")
    if shapes[0].element_type not in PREFIX:
        raise Refused(f"LAPACK has no {shapes[0].element_type}")
    if small := small_steps(routine, shapes, in_place):
        return small
    found = plan(routine, shapes, in_place)
    numbers = [n for step in found.steps if isinstance(step, Call) for n in step.arguments if isinstance(n, int)]
    if max(numbers) > LIMIT:
        raise Refused(f"LAPACK's integers do not hold {max(numbers)}")
    return found


class _Inside:
    """A matrix that LAPACK overwrites, columns first: where the result lies if it can be there, else in scratch.

    ``first``, ``last``: the steps that bring the operand in and the result out.
    """

    def __init__(self, a: Matrix, out: Matrix, result: Place, scratch: Scratch) -> None:
        if (a.rows, a.columns) != (out.rows, out.columns):
            raise Refused("operand and result are of different shapes")
        is_there = a.by_columns and out.by_columns
        self.place = result if is_there else scratch.take(a.rows * a.columns, a.element.byte_size)
        self.first = [brought(a, Place(0), self.place, not a.by_columns)]
        inner = Matrix(a.element, a.rows, a.columns, by_columns=True)
        self.last = [] if is_there else [brought(inner, self.place, result, not out.by_columns)]

    def around(self, *steps: Step) -> tuple[Step, ...]:
        return (*self.first, *steps, *self.last)


def _uplo(lower: bool) -> str:
    return "L" if lower else "U"


def _factor(m: Matrix, out: Matrix, lower: bool, info: Place) -> list[Step]:
    """Cholesky: the transpose of a lower factor is the upper one of the transpose, so rows are no trouble."""
    if m.by_columns != out.by_columns:
        raise Refused("operand and result lie in different orders")
    call = (_uplo(lower == m.by_columns), m.rows, Place(1), m.rows, info)
    factor = Call(PREFIX[m.element] + "potrf", call)
    return [Move(Place(0), Place(1), m.size), factor, Pivots(Place(1), m.rows, m.element, info)]


def _potrf(routine: lapack.Potrf, shapes: Sequence[Shape], in_place: bool) -> Steps:
    a, out = map(matrix_of, shapes[:2])
    need_order(shapes[2])
    return Steps(tuple(_factor(a, out, routine.lower, Place(2))), 0, a.rows**3 // 6)


def _cholesky(routine: lapack.Cholesky, shapes: Sequence[Shape], in_place: bool) -> Steps:
    a, out = map(matrix_of, shapes)
    scratch = Scratch()
    info = scratch.take(1)
    others = Factored(Place(1), a.rows, routine.lower == a.by_columns, a.element, info)
    return Steps((*_factor(a, out, routine.lower, info), others), scratch.size, a.rows**3 // 6)


def _trsm(routine: lapack.TriangularSolve, shapes: Sequence[Shape], in_place: bool) -> Steps:
    """``op(a) x == b`` is ``x^T op(a)^T == b^T``, for whichever of `a` and `x` lies in rows."""
    a, b, x = map(matrix_of, shapes)
    if b.by_columns != x.by_columns:
        raise Refused("operand and result lie in different orders")
    how = routine.transpose
    if a.by_columns != x.by_columns:
        if how == "C" and a.element.is_complex:
            raise Refused("BLAS has no conjugate that is not transposed")
        how = "T" if how == "N" else "N"
    scratch, factors = Scratch(), Place(0)
    before: list[Step] = []
    if in_place:  # x lies where a lies, which is read to the end
        factors = scratch.take(a.rows * a.columns, a.element.byte_size)
        before.append(Move(Place(0), factors, a.size))
    side = "L" if routine.left == x.by_columns else "R"
    uplo, unit = _uplo(routine.lower == a.by_columns), "U" if routine.unit_diagonal else "N"
    arguments = (side, uplo, how, unit, x.down, x.across, One(x.element), factors, a.down, Place(2), x.down)
    solve = Call(PREFIX[a.element] + "trsm", arguments)
    work = a.rows * x.rows * x.columns // 2
    return Steps((*before, Move(Place(1), Place(2), x.size), solve), scratch.size, work)


def _getrf(routine: lapack.Getrf, shapes: Sequence[Shape], in_place: bool) -> Steps:
    a, factors = map(matrix_of, shapes[:2])
    need_order(*shapes[2:])
    scratch = Scratch()
    inside = _Inside(a, factors, Place(1), scratch)
    call = Call(PREFIX[a.element] + "getrf", (a.rows, a.columns, inside.place, a.rows, Place(2), Place(3)))
    return Steps(inside.around(call), scratch.size, a.rows * a.columns * min(a.rows, a.columns) // 3)


def _geqrf(routine: lapack.Geqrf, shapes: Sequence[Shape], in_place: bool) -> Steps:
    a, r = map(matrix_of, shapes[:2])
    need_order(shapes[2])
    scratch, count = Scratch(), _BLOCK * a.columns
    inside = _Inside(a, r, Place(1), scratch)
    work, info = scratch.take(count, a.element.byte_size), scratch.take(1)
    call = Call(PREFIX[a.element] + "geqrf", (a.rows, a.columns, inside.place, a.rows, Place(2), work, count, info))
    return Steps(inside.around(call), scratch.size, a.rows * a.columns * min(a.rows, a.columns))


def _orgqr(routine: lapack.Orgqr, shapes: Sequence[Shape], in_place: bool) -> Steps:
    a, q = matrix_of(shapes[0]), matrix_of(shapes[2])
    need_order(shapes[1])
    scratch, count, reflectors = Scratch(), _BLOCK * a.columns, shapes[1].dims[-1]
    inside = _Inside(a, q, Place(2), scratch)
    work, info = scratch.take(count, a.element.byte_size), scratch.take(1)
    name = PREFIX[a.element] + ("ungqr" if a.element.is_complex else "orgqr")
    call = Call(name, (a.rows, a.columns, reflectors, inside.place, a.rows, Place(1), work, count, info))
    return Steps(inside.around(call), scratch.size, a.rows * a.columns * reflectors)


def _gtsv(routine: lapack.Gtsv, shapes: Sequence[Shape], in_place: bool) -> Steps:
    """In scratch memory, so that any result may lie where any operand lies."""
    b, x = matrix_of(shapes[3]), matrix_of(shapes[7])
    lines = (*range(3), *range(4, 7))
    need_order(*(shapes[n] for n in lines), shapes[8])
    n, bytes_, scratch = b.rows, b.element.byte_size, Scratch()
    low, main, high = (scratch.take(n, bytes_) for _ in range(3))
    right = scratch.take(n * b.columns, bytes_)
    inside = Place(-1, low.offset + bytes_)  # its first element is outside the matrix
    solve = Call(PREFIX[b.element] + "gtsv", (n, b.columns, inside, main, high, right, n, Place(8)))
    given = (Move(Place(k), place, n * bytes_) for k, place in enumerate((low, main, high)))
    results = (Move(place, Place(k), n * bytes_) for k, place in enumerate((low, main, high), 4))
    columns = Matrix(b.element, n, b.columns, by_columns=True)
    ends = brought(b, Place(3), right, not b.by_columns), brought(columns, right, Place(7), not x.by_columns)
    return Steps((*given, ends[0], solve, *results, ends[1]), scratch.size, 5 * n * (b.columns + 1))


def _syevd(routine: lapack.Syevd, shapes: Sequence[Shape], in_place: bool) -> Steps:
    a, v = map(matrix_of, shapes[:2])
    need_order(*shapes[2:])
    n, scratch, part = a.rows, Scratch(), a.element.component.byte_size
    inside = _Inside(a, v, Place(1), scratch)
    job = "V" if routine.vectors else "N"
    extra: list[Place | int] = []
    if a.element.is_complex:
        count, reals = 2 * n + n * n + _BLOCK * n, 1 + 5 * n + 2 * n * n
        extra = [scratch.take(reals, part), reals]
    else:
        count = 1 + 6 * n + 2 * n * n + _BLOCK * n
    work, integers = scratch.take(count, a.element.byte_size), 3 + 5 * n
    name = PREFIX[a.element] + ("heevd" if a.element.is_complex else "syevd")
    call = (job, _uplo(routine.lower), n, inside.place, n, Place(2), work, count, *extra)
    solve = Call(name, (*call, scratch.take(integers), integers, Place(3)))
    if routine.vectors:
        return Steps(inside.around(solve), scratch.size, 9 * n**3)
    return Steps((*inside.first, solve, Move(None, Place(1), v.size)), scratch.size, 2 * n**3)


def _svd(routine: lapack.Svd, shapes: Sequence[Shape], in_place: bool) -> Steps:
    if routine.right != "vh":
        raise Refused("LAPACK gives V^H")
    if any(s.rank < 2 or s.dims[:-2] != shapes[0].dims[:-2] for s in shapes[3:5]):
        raise Refused("vectors that are not wanted are no matrices of the batch")
    a, left, u, vh = map(matrix_of, (shapes[0], shapes[1], *shapes[3:5]))
    need_order(shapes[2], shapes[5])
    m, n, size = a.rows, a.columns, a.element.byte_size
    small, large, scratch = min(m, n), max(m, n), Scratch()
    inner = (m, n) if routine.full else (small, small)
    if routine.vectors and (u.rows, u.columns, vh.rows, vh.columns) != (m, *inner, n):
        raise Refused("U and V^H are not of the shapes LAPACK gives")
    job = ("A" if routine.full else "S") if routine.vectors else "N"
    count = (5 * small * small if routine.vectors else 0) + 10 * small + 2 * large + _BLOCK * (m + n)
    copy, work = scratch.take(m * n, size), scratch.take(count, size)
    extra: list[Place] = []
    if a.element.is_complex:
        reals = small * max(5 * small + 7, 2 * large + 2 * small + 1)
        extra = [scratch.take(reals, a.element.component.byte_size)]
    vectors: list[Place | int] = []
    last: list[Step] = []
    for result, place in ((u, Place(3)), (vh, Place(4))):
        if not routine.vectors:
            last.append(Move(None, place, result.size))
        elif not result.by_columns:
            by_rows, place = place, scratch.take(result.rows * result.columns, size)
            last.append(Turn(place, by_rows, result.rows, result.columns, a.element))
        vectors += [place, result.rows]
    call = Call(
        PREFIX[a.element] + "gesdd",
        (job, m, n, copy, m, Place(2), *vectors, work, count, *extra, scratch.take(8 * small), Place(5)),
    )
    columns = Matrix(a.element, m, n, by_columns=True)
    first = (brought(a, Place(0), copy, not a.by_columns), brought(columns, copy, Place(1), not left.by_columns))
    return Steps((*first, call, *last), scratch.size, (12 if routine.vectors else 3) * m * n * small)


_PLANS: dict[type, Callable[..., Steps]] = {
    lapack.Potrf: _potrf,
    lapack.Cholesky: _cholesky,
    lapack.TriangularSolve: _trsm,
    lapack.Getrf: _getrf,
    lapack.Geqrf: _geqrf,
    lapack.Orgqr: _orgqr,
    lapack.Gtsv: _gtsv,
    lapack.Syevd: _syevd,
    lapack.Svd: _svd,
}
