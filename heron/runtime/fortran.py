"""The BLAS and LAPACK calls of a native program on one matrix of a batch, as plain data.

Routines have Fortran's calling convention: all arguments are addresses, matrices lie column after column.
"""

from __future__ import annotations

from heron.hlo.ir.types import ElementType
from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """The matrix at hand in an array of the thunk, or bytes of scratch memory (``array`` is -1)."""

    array: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class One:
    """The number one."""

    element: ElementType


@dataclass(frozen=True, slots=True)
class Call:
    """Call a routine; a string stands for its first letter, an integer for 32 bits."""

    routine: str
    arguments: tuple[str | int | One | Place, ...]


@dataclass(frozen=True, slots=True)
class Move:
    """Copy bytes from one place to another, unless that is the same one; with no origin fill the target with zeros."""

    origin: Place | None
    target: Place
    size: int


@dataclass(frozen=True, slots=True)
class Turn:
    """Copy a matrix of ``down`` by ``across`` elements as its transpose; the two places are apart."""

    origin: Place
    target: Place
    down: int
    across: int
    element: ElementType


@dataclass(frozen=True, slots=True)
class Pivots:
    """Check a factorisation for NaN pivots: if it succeeded, the integer at ``info`` becomes the order of the first
    minor with a NaN pivot, if there is one. OpenBLAS accepts a NaN as pivot, LAPACK's own code does not.
    """

    matrix: Place
    n: int
    element: ElementType
    info: Place


@dataclass(frozen=True, slots=True)
class Factored:
    """Zero in the triangle of an ``n`` by ``n`` matrix above its diagonal, as columns lie, or below it; where the
    integer at ``info`` is not 0, NaN in the whole matrix.
    """

    matrix: Place
    n: int
    above: bool
    element: ElementType
    info: Place


@dataclass(frozen=True, slots=True)
class Paired:
    """Put the ``n`` complex vectors that a real routine gives as columns of real numbers into ``target``: for a pair of
    conjugate values, which ``imaginary`` has the parts of, the real and the imaginary part of the first one's vector.
    ``target`` lies by columns, or by rows. ``element``: the routine's.
    """

    vectors: Place
    imaginary: Place
    target: Place
    n: int
    by_columns: bool
    element: ElementType


@dataclass(frozen=True, slots=True)
class Strided:
    """A matrix as it lies: elements from a row to the next, and from a column to the next."""

    place: Place
    down: int
    across: int


@dataclass(frozen=True, slots=True)
class SmallCholesky:
    """Put the lower factor of an ``n`` by ``n`` matrix in the place of its lower triangle. The integer at ``info``
    becomes 0, or the order of the first minor that is not positive.
    """

    matrix: Strided
    n: int
    element: ElementType
    info: Place


@dataclass(frozen=True, slots=True)
class SmallLu:
    """Put the factors of a matrix in its place, with the pivots that LAPACK takes. The integer at ``info`` becomes 0,
    or the number of the first pivot that is 0.
    """

    matrix: Strided
    rows: int
    columns: int
    element: ElementType
    pivots: Place
    info: Place


@dataclass(frozen=True, slots=True)
class SmallSolve:
    """Put the x with ``a @ x == right`` in the place of ``right``, ``n`` by ``columns``; of ``a`` one triangle is read,
    and its conjugates with ``conjugate``.
    """

    a: Strided
    right: Strided
    n: int
    columns: int
    element: ElementType
    lower: bool
    unit_diagonal: bool
    conjugate: bool


@dataclass(frozen=True, slots=True)
class Finite:
    """Take the steps if the ``count`` numbers of a matrix are finite; with others LAPACK's balancing fails, and what
    comes after it reads numbers that it has not set. Else the integer at ``info`` becomes -4, as JAX has it, and the
    results, with their bytes, zero.
    """

    matrix: Place
    count: int
    element: ElementType
    info: Place
    steps: tuple[Call | Move | Turn | Paired, ...]
    results: tuple[tuple[Place, int], ...]


Step = Call | Move | Turn | Pivots | Factored | Paired | SmallCholesky | SmallLu | SmallSolve | Finite


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps in order, the bytes of scratch memory they need, and about how many multiplications they are."""

    steps: tuple[Step, ...]
    scratch: int
    work: int
