"""Exchanges of arrays at a collective, as plain data: which part of which array, and how parts are joined."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from math import prod

from heron.hlo.ir.types import ElementType
from heron.records import dataclass


class Way(enum.IntEnum):
    """The source of results among the arrays that the members of a group bring.

    EACH: a piece of every member's array. PAIRED: one array of each member, in the order of ranks. FROM: the arrays of
    one member. REDUCE: pieces combined. ALL_REDUCE: whole arrays combined. RAGGED: rows that each sender names.
    """

    EACH = 0
    PAIRED = 1
    FROM = 2
    REDUCE = 3
    ALL_REDUCE = 4
    RAGGED = 5


@dataclass(frozen=True, slots=True)
class Piece:
    """The part of an operand that goes to one member. Sizes and steps are bytes.

    Attributes:
        rows: the part is that many rows of `row_bytes` each.
        from_row: from a row to the next one in the operand.
        from_rank: times the receiver's rank, the place of its first row.
        to_row: from a row to the next one in the result.
        to_rank: times the sender's rank, the place of the first row from it.
        items: elements of a row.
        operand_bytes: the size of the whole operand.
    """

    rows: int
    row_bytes: int
    from_row: int
    from_rank: int
    to_row: int
    to_rank: int
    items: int
    operand_bytes: int

    def result_bytes(self, members: int) -> int:
        """The size of the result: a piece of each member's, or one piece that combines them."""
        return self.rows * self.row_bytes * (members if self.to_rank else 1)

    def part_bytes(self, members: int) -> int:
        """The bytes of an operand that are pieces of all receivers."""
        return self.rows * self.row_bytes * (members if self.from_rank else 1)


@dataclass(frozen=True, slots=True)
class Reduction:
    """The op by which a library combines the elements of each pair, and their types."""

    opcode: str
    types: tuple[ElementType, ...]


def gathered(dims: Sequence[int], item: int, dim: int, size: int) -> Piece:
    """An operand of these dimensions in memory order that `size` members join along dimension `dim`."""
    row = prod(dims[dim:]) * item
    return Piece(prod(dims[:dim]), row, row, 0, row * size, row, row // item, prod(dims) * item)


def exchanged(dims: Sequence[int], item: int, dim: int, size: int) -> Piece:
    """An operand that is cut along a dimension into a piece for each of `size` members, and theirs joined again."""
    row = prod(dims[dim:]) * item // size
    return Piece(prod(dims[:dim]), row, row * size, row, row * size, row, row // item, prod(dims) * item)


def scattered(dims: Sequence[int], item: int, dim: int, size: int) -> Piece:
    """An operand that is cut along a dimension into a piece for each of `size` members."""
    row = prod(dims[dim:]) * item // size
    return Piece(prod(dims[:dim]), row, row * size, row, row, 0, row // item, prod(dims) * item)


def in_rows(dims: Sequence[int], item: int) -> Piece:
    """An operand of which rows are taken, along its first dimension."""
    row = prod(dims[1:]) * item
    return Piece(dims[0], row, row, 0, row, 0, prod(dims[1:]), prod(dims) * item)


def whole(dims: Sequence[int], item: int) -> Piece:
    """An operand that is handed on as it is."""
    count = prod(dims)
    return Piece(1, count * item, 0, 0, 0, 0, count, count * item)
