"""The parts of members' arrays that the members in another process need at a collective, packed into a message."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from heron.records import dataclass
from heron.runtime.collectives.exchange import Way
from heron.runtime.collectives.state import Op, Piece, chunk_items

#: bytes between which the parts of a message begin; its head takes as many
ALIGNMENT = 16


@dataclass(frozen=True, slots=True)
class Part:
    """A part of array `n` of the member of rank `sender`.

    ``bytes``: so many, from byte `begin` on; or, where there are ``columns``, those that go to so many receivers.
    """

    sender: int
    n: int
    begin: int
    bytes: int
    columns: tuple[int, ...] = ()


def of_arrays(
    op: Op,
    senders: Sequence[int],
    receivers: Sequence[int],
    wanted: Sequence[int],
    chunks: Sequence[int],
) -> Iterator[Part]:
    """The parts of operands that some members send to others.

    Args:
        op: the collective.
        senders: the senders' ranks; ``receivers``: those of the members that need their operands.
        wanted: of each receiver the rank that it takes all from; none for collectives that take from every member.
        chunks: of each member of the clique the chunk that it sums up.
    """
    way, size = Way(op.way), len(chunks)
    for sender in senders:
        if way == Way.FROM and sender not in wanted:
            continue
        for n, piece in enumerate(_pieces(op)):
            if way == Way.PAIRED and n not in receivers:
                continue
            if way == Way.ALL_REDUCE:
                yield Part(sender, n, *_chunk(piece, size, [chunks[r] for r in receivers]))
            elif way in (Way.EACH, Way.REDUCE) and _has_columns(piece, size):
                share = piece.rows * piece.row_bytes * len(receivers)
                yield Part(sender, n, 0, share, tuple(receivers))
            else:
                yield Part(sender, n, 0, piece.operand_bytes)


def of_chunks(op: Op, sender: int, numbers: Sequence[int], size: int) -> Iterator[Part]:
    """The parts of results that a process has summed up, whose members have chunks of those numbers."""
    for n, piece in enumerate(_pieces(op)):
        yield Part(sender, n, *_chunk(piece, size, numbers))


def _pieces(op: Op) -> Any:
    return (Piece * op.arrays).from_address(op.pieces)


def _chunk(piece: Piece, size: int, numbers: Sequence[int]) -> tuple[int, int]:
    """The first byte of some chunks that follow each other, and their bytes."""
    if not piece.items:
        return 0, 0
    unit = piece.row_bytes // piece.items
    begin, end = (chunk_items(piece.items, size, n) for n in (min(numbers), max(numbers) + 1))
    return begin * unit, (end - begin) * unit


def _has_columns(piece: Piece, size: int) -> bool:
    """Whether an operand is rows of a column for each member."""
    is_cut = piece.from_rank == piece.row_bytes and piece.from_row == piece.row_bytes * size
    return is_cut and piece.operand_bytes > 0


class Message:
    """Parts of arrays behind a head."""

    def __init__(self, op: Op, size: int, parts: Sequence[Part]) -> None:
        self._pieces, self._size = _pieces(op), size
        self._places: list[tuple[Part, int]] = []
        self.bytes = ALIGNMENT
        for part in parts:
            self._places.append((part, self.bytes))
            self.bytes += -(-part.bytes // ALIGNMENT) * ALIGNMENT

    def pack(self, message: np.ndarray, arrays: Sequence[Any]) -> None:
        """Copy the parts there; ``arrays``: for each sender's rank the addresses of its arrays."""
        for part, at in self._places:
            array = arrays[part.sender][part.n] or 0
            if not part.columns:
                ctypes.memmove(message.ctypes.data + at, array + part.begin, part.bytes)
                continue
            rows, size, width = self._shape(part)
            raw: Any = (ctypes.c_uint8 * (rows * size * width)).from_address(array)
            columns = np.frombuffer(raw, np.uint8).reshape(rows, size, width)[:, list(part.columns)]
            message[at : at + part.bytes] = columns.reshape(-1)

    def addresses(self, message: np.ndarray) -> tuple[dict[int, list[int | None]], list[np.ndarray]]:
        """Each sender's arrays as if they were here, None for those that nobody needs; and memory to be kept."""
        found: dict[int, list[int | None]] = {}
        kept = [message]
        for part, at in self._places:
            place = message.ctypes.data + at - part.begin
            if part.columns:
                rows, size, width = self._shape(part)
                array = np.empty((rows, size, width), np.uint8)  # columns of others are not looked at
                given = message[at : at + part.bytes]
                array[:, list(part.columns)] = given.reshape(rows, len(part.columns), width)
                kept.append(array)
                place = array.ctypes.data
            found.setdefault(part.sender, [None] * len(self._pieces))[part.n] = place
        return found, kept

    def unpack(self, message: np.ndarray, arrays: Sequence[Any]) -> None:
        """Copy the parts to arrays, which lie at those addresses."""
        for part, at in self._places:
            ctypes.memmove((arrays[part.n] or 0) + part.begin, message.ctypes.data + at, part.bytes)

    def _shape(self, part: Part) -> tuple[int, int, int]:
        piece = self._pieces[part.n]
        return piece.rows, self._size, piece.row_bytes
