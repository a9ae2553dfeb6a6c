"""Matrices of a batch as they lie in memory, and the steps that copy them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from heron.backends.calls.host import memory_order
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import ElementType
from heron.records import dataclass
from heron.runtime.fortran import Move, Place, Step, Strided, Turn

_ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class Matrix:
    """One of a batch of matrices, as HLO counts rows and columns; in memory, ``down`` by ``across``."""

    element: ElementType
    rows: int
    columns: int
    by_columns: bool

    @property
    def down(self) -> int:
        return self.rows if self.by_columns else self.columns

    @property
    def across(self) -> int:
        return self.columns if self.by_columns else self.rows

    def strided(self, place: Place) -> Strided:
        """Such a matrix at a place."""
        return Strided(place, 1, self.rows) if self.by_columns else Strided(place, self.columns, 1)

    @property
    def size(self) -> int:
        return self.rows * self.columns * self.element.byte_size


class Refused(Exception):
    """Why a routine has no steps for such arrays."""


def batch_of(shapes: Sequence[Shape]) -> int:
    """The number of matrices in each array of a call; arrays of vectors have a dimension less."""
    return prod(max(shapes, key=lambda s: s.rank).dims[:-2])


def matrix_of(shape: Shape) -> Matrix:
    """The matrices of an array, which must be contiguous, one after another."""
    order = memory_order(shape)
    outer = tuple(range(shape.rank - 2))
    if order[:-2] != outer:
        raise Refused("matrices of the batch do not lie one after another")
    is_line = 1 in shape.dims[-2:]  # as good in columns as in rows
    return Matrix(shape.element_type, *shape.dims[-2:], by_columns=is_line or order[-1] == shape.rank - 2)


def need_order(*shapes: Shape) -> None:
    if any(memory_order(s) != tuple(range(s.rank)) for s in shapes):
        raise Refused("vectors of the batch do not lie one after another")


class Scratch:
    """Hands out scratch memory."""

    def __init__(self) -> None:
        self.size = 0

    def take(self, count: int, element_bytes: int = 4) -> Place:
        place = Place(-1, self.size)
        self.size += -(-count * element_bytes // _ALIGNMENT) * _ALIGNMENT
        return place


def brought(m: Matrix, origin: Place, target: Place, turned: bool) -> Step:
    """Of the matrix at `origin`, or of its transpose."""
    return Turn(origin, target, m.down, m.across, m.element) if turned else Move(origin, target, m.size)
