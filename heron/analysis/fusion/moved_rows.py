"""Fusions that only put rows of arrays side by side: many concatenated columns.

A kernel is cut into a loop for each operand, or chooses the operand for every element: of many short pieces, neither is
fast to compile and to run. Copies of the pieces, row by row, are both.

    a = f32[9,2] parameter(0)
    b = f32[9,8] parameter(1)
    part = f32[9,1] slice(b), slice={[0:9], [3:4]}
    ROOT r = f32[9,3] concatenate(a, part), dimensions={1}    9 rows: 8 bytes of a; 4 bytes 32 apart, from byte 12 of b
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

from heron.analysis.fusion.fusion import outputs_of
from heron.analysis.fusion.moved_blocks import MOST
from heron.analysis.fusion.roles import is_view
from heron.hlo.ir.instruction import Instruction

#: pieces of a row up to which loops for each of them are better
FEW = 8


class Piece(NamedTuple):
    """``size`` bytes of each row from a parameter: the first from byte ``start`` on, the next ones ``step`` bytes
    apart."""

    parameter: Instruction
    start: int
    step: int
    size: int


class MovedRows(NamedTuple):
    """The number of rows, and the pieces side by side that each is made of."""

    rows: int
    pieces: list[Piece]


def moved_rows(i: Instruction) -> MovedRows | None:
    """The rows that the one output of a fusion is made of; None where it does more, or few pieces make a row."""
    outputs = outputs_of(i.attrs["calls"].root)
    root = outputs[0].instruction if len(outputs) == 1 and outputs[0].part is None else None
    while root is not None and _is_plain(root) and is_view(root):
        root = root.operands[0]
    if root is None or root.opcode != "concatenate" or not _is_plain(root) or not root.shape.num_elements:
        return None
    rows = prod(root.shape.dims[: root.dimensions[0]])
    pieces = _joined(root, rows)
    return MovedRows(rows, pieces) if pieces is not None and len(pieces) > FEW else None


def _joined(i: Instruction, rows: int) -> list[Piece] | None:
    """The pieces of a concatenation's rows."""
    found: list[Piece] = []
    for o in i.operands:
        pieces = _pieces(o, rows) if o.shape.num_elements else []
        if pieces is None or len(found) + len(pieces) > MOST:
            return None
        found += pieces
    return found


def _pieces(i: Instruction, rows: int) -> list[Piece] | None:
    """The pieces of an array that is cut into so many equal rows."""
    if not _is_plain(i):
        return None
    if i.opcode == "parameter":
        size = i.shape.byte_size // rows
        return [Piece(i, 0, size, size)]
    if is_view(i):
        return _pieces(i.operands[0], rows)
    if i.opcode == "concatenate" and prod(i.shape.dims[: i.dimensions[0]]) == rows:
        return _joined(i, rows)
    return _sliced(i, rows) if i.opcode == "slice" else None


def _sliced(i: Instruction, rows: int) -> list[Piece] | None:
    """The piece of a slice that takes neighbouring bytes of every row."""
    source = i.operands[0].shape
    d = next(
        (d for d in range(source.rank + 1) if prod(source.dims[:d]) == rows and prod(i.shape.dims[:d]) == rows), -1
    )
    if d < 0:
        return None
    inner = range(d, source.rank)
    first = next((k for k in inner if i.shape.dims[k] != 1), source.rank)
    if any(i.shape.dims[k] != source.dims[k] for k in inner if k > first) or any(s != 1 for _, _, s in i.slice):
        return None
    whole = _pieces(i.operands[0], rows)
    if whole is None or len(whole) != 1:
        return None
    (piece,) = whole
    bytes_ = source.element_type.bits // 8
    before = sum(i.slice[k][0] * prod(source.dims[k + 1 :]) for k in inner) * bytes_
    return [piece._replace(start=piece.start + before, size=prod(i.shape.dims[d:]) * bytes_)]


def _is_plain(i: Instruction) -> bool:
    """Whether `i` is an array of whole bytes in row-major order and of one size."""
    shape = i.shape
    row_major = shape.layout is None or shape.layout.is_default
    return shape.is_array and row_major and not shape.element_type.bits % 8 and not any(shape.dynamic)
