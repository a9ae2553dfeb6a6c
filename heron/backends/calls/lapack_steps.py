"""Routines of linear algebra as steps of the native program: which calls of BLAS and LAPACK a matrix needs.

The steps do to every matrix what the routine of `runtime/host/lapack.py` of the same name does, with no Python and
with as much workspace as LAPACK's blocked algorithms can use. A matrix stored by rows is the transpose of the one that
LAPACK sees: either that is as good, or a matrix is turned on its way in and out.
Source: https://netlib.org/lapack/explore-html
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from heron.backends.calls.matrices import Matrix, Refused, Scratch, brought, matrix_of, need_order
from heron.backends.calls.small_steps import small_steps
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import S32, ElementType
from heron.records import dataclass
from heron.runtime.cpu.blas import LIMIT, PREFIX, lapack_address
from heron.runtime.fortran import Call, Factored, Finite, Move, One, Paired, Pivots, Place, Step, Steps, Turn
from heron.runtime.host import lapack

#: columns that LAPACK's blocked algorithms take at a time, at most
_BLOCK = 64


@dataclass(frozen=True, slots=True)
class Geev:
    """Eigenvalues and eigenvectors: whether the left ones are wanted, and the right ones."""

    left: bool
    right: bool


@dataclass(frozen=True, slots=True)
class Gees:
    """The Schur form, and its vectors if they are wanted."""

    vectors: bool


@dataclass(frozen=True, slots=True)
class Gehrd:
    """The Hessenberg form of rows ``low`` to ``high``, from 1."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Sytrd:
    """The tridiagonal form of a Hermitian matrix."""

    lower: bool


@dataclass(frozen=True, slots=True)
class Geqp3:
    """QR with column pivoting."""


@dataclass(frozen=True, slots=True)
class Ormqr:
    """A product with the Q of a QR: whether Q is the left factor, and whether its adjoint is meant."""

    left: bool
    adjoint: bool


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
    steps = [inner for step in found.steps for inner in (step.steps if isinstance(step, Finite) else (step,))]
    numbers = [n for step in steps if isinstance(step, Call) for n in step.arguments if isinstance(n, int)]
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


def _with_room(
    name: str, element: ElementType, scratch: Scratch, given: Callable[[Place, int], tuple[Any, ...]]
) -> Call:
    """A call with as much workspace as LAPACK asks for: with more or less it takes other ways, which round otherwise.

    ``given``: the arguments, with that workspace and that many numbers of it.
    """
    probe = Place(-1, -1)
    arguments = given(probe, -1)
    count = _room(name, arguments, arguments.index(probe), element)
    return Call(name, given(scratch.take(count, element.byte_size), count))


def _room(name: str, arguments: tuple[Any, ...], at: int, element: ElementType) -> int:
    """LAPACK's answer to a workspace of -1 numbers, which it puts into the first number of the workspace, ``at``."""
    held: list[Any] = []
    for argument in arguments:
        match argument:
            case str():
                held.append(ctypes.c_char(argument.encode()))
            case int():
                held.append(ctypes.c_int32(argument))
            case _:
                held.append((ctypes.c_char * 64)())
    routine = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(held))(lapack_address(name))
    routine(*map(ctypes.addressof, held))
    return max(1, int(np.frombuffer(held[at], element.dtype, 1)[0].real))


def _geev(routine: Geev, shapes: Sequence[Shape], in_place: bool) -> Steps:
    """A real routine gives the values' two parts apart, and pairs of vectors as two columns of real numbers."""
    a, (left, right) = matrix_of(shapes[0]), map(matrix_of, shapes[-3:-1])
    need_order(*shapes[1:-3], shapes[-1])
    n, size, element, scratch = a.rows, a.element.byte_size, a.element, Scratch()
    *values, left_place, right_place, info = (Place(k) for k in range(1, len(shapes)))
    sides = (routine.left, left, left_place), (routine.right, right, right_place)
    copy = scratch.take(n * n, size)
    extra = [scratch.take(2 * n, element.component.byte_size)] if element.is_complex else []
    found: list[Place | int] = []
    last: list[Move | Paired | Turn] = []
    for wanted, m, place in sides:
        inside = place
        if not wanted:
            last.append(Move(None, place, m.size))
        elif not element.is_complex:
            inside = scratch.take(n * n, size)
            last.append(Paired(inside, values[1], place, n, m.by_columns, element))
        elif not m.by_columns:
            inside = scratch.take(n * n, size)
            last.append(Turn(inside, place, n, n, element))
        found += [inside, n]
    jobs = ("V" if wanted else "N" for wanted, *_ in sides)
    before, after = (*jobs, n, copy, n, *values, *found), (*extra, info)
    call = _with_room(PREFIX[element] + "geev", element, scratch, lambda *room: (*before, *room, *after))
    first = brought(a, Place(0), copy, not a.by_columns)
    results = *((v, n * size) for v in values), (left_place, left.size), (right_place, right.size)
    rest = Finite(copy, n * n, element, info, (call, *last), results)
    return Steps((first, rest), scratch.size, (25 if routine.left or routine.right else 10) * n**3)


def _gees(routine: Gees, shapes: Sequence[Shape], in_place: bool) -> Steps:
    """Places: the matrix, its form, the vectors, one or two arrays of values, how many were selected, info."""
    a, form, vectors = map(matrix_of, shapes[:3])
    need_order(*shapes[3:])
    n, element, scratch = a.rows, a.element, Scratch()
    inside = _Inside(a, form, Place(1), scratch)
    *values, selected, info = (Place(k) for k in range(3, len(shapes)))
    place = Place(2)
    last: list[Step] = []
    if not routine.vectors:
        last.append(Move(None, Place(2), vectors.size))
    elif not vectors.by_columns:
        place = scratch.take(n * n, element.byte_size)
        last.append(Turn(place, Place(2), n, n, element))
    flags = scratch.take(n)
    extra = [scratch.take(n, element.component.byte_size)] if element.is_complex else []
    job = "V" if routine.vectors else "N"
    # no order of values is asked for, so that the function that would select some is not called
    before, after = (job, "N", flags, n, inside.place, n, selected, *values, place, n), (*extra, flags, info)
    call = _with_room(PREFIX[element] + "gees", element, scratch, lambda *room: (*before, *room, *after))
    return Steps((*inside.around(call), *last), scratch.size, 25 * n**3)


def _gehrd(routine: Gehrd, shapes: Sequence[Shape], in_place: bool) -> Steps:
    a, form = map(matrix_of, shapes[:2])
    need_order(*shapes[2:])
    scratch = Scratch()
    inside = _Inside(a, form, Place(1), scratch)
    before = a.rows, routine.low, routine.high, inside.place, a.rows, Place(2)
    call = _with_room(PREFIX[a.element] + "gehrd", a.element, scratch, lambda *room: (*before, *room, Place(3)))
    return Steps(inside.around(call), scratch.size, 4 * a.rows**3)


def _sytrd(routine: Sytrd, shapes: Sequence[Shape], in_place: bool) -> Steps:
    a, form = map(matrix_of, shapes[:2])
    need_order(*shapes[2:])
    scratch = Scratch()
    inside = _Inside(a, form, Place(1), scratch)
    before = _uplo(routine.lower), a.rows, inside.place, a.rows, Place(2), Place(3), Place(4)
    name = PREFIX[a.element] + ("hetrd" if a.element.is_complex else "sytrd")
    call = _with_room(name, a.element, scratch, lambda *room: (*before, *room, Place(5)))
    return Steps(inside.around(call), scratch.size, 2 * a.rows**3)


def _geqp3(routine: Geqp3, shapes: Sequence[Shape], in_place: bool) -> Steps:
    """Places: the matrix, which columns come first, R, the columns' numbers, the reflectors' factors."""
    a, r = matrix_of(shapes[0]), matrix_of(shapes[2])
    need_order(shapes[1], *shapes[3:])
    m, n, element, scratch = a.rows, a.columns, a.element, Scratch()
    inside, info = _Inside(a, r, Place(2), scratch), scratch.take(1)
    extra = [scratch.take(2 * n, element.component.byte_size)] if element.is_complex else []
    before, after = (m, n, inside.place, m, Place(3), Place(4)), (*extra, info)
    call = _with_room(PREFIX[element] + "geqp3", element, scratch, lambda *room: (*before, *room, *after))
    pivots = Move(Place(1), Place(3), n * S32.byte_size)
    return Steps((pivots, *inside.around(call)), scratch.size, 2 * m * n * min(m, n))


def _ormqr(routine: Ormqr, shapes: Sequence[Shape], in_place: bool) -> Steps:
    """Places: the reflectors, their factors, the other matrix, the product."""
    a, c, product = (matrix_of(shapes[k]) for k in (0, 2, 3))
    need_order(shapes[1])
    reflectors, scratch, element = a.columns, Scratch(), a.element
    by_columns = Matrix(element, c.rows, c.columns, by_columns=True)
    place = Place(3) if product.by_columns else scratch.take(c.rows * c.columns, element.byte_size)
    factors, info = Place(0), scratch.take(1)
    steps: list[Step] = []
    if not a.by_columns:
        factors = scratch.take(a.rows * a.columns, element.byte_size)
        steps.append(Turn(Place(0), factors, a.down, a.across, element))
    if not c.by_columns and product.by_columns:  # it may lie where the other matrix lies
        turned = scratch.take(c.rows * c.columns, element.byte_size)
        steps += [Turn(Place(2), turned, c.down, c.across, element), Move(turned, place, c.size)]
    else:
        steps.append(brought(c, Place(2), place, not c.by_columns))
    how = ("C" if element.is_complex else "T") if routine.adjoint else "N"
    sides = "L" if routine.left else "R", how
    before = (*sides, c.rows, c.columns, reflectors, factors, a.rows, Place(1), place, c.rows)
    name = PREFIX[element] + ("unmqr" if element.is_complex else "ormqr")
    steps.append(_with_room(name, element, scratch, lambda *room: (*before, *room, info)))
    if not product.by_columns:
        steps.append(brought(by_columns, place, Place(3), turned=True))
    return Steps(tuple(steps), scratch.size, 2 * c.rows * c.columns * reflectors)


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
    Geev: _geev,
    Gees: _gees,
    Gehrd: _gehrd,
    Sytrd: _sytrd,
    Geqp3: _geqp3,
    Ormqr: _ormqr,
}
