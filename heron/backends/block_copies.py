"""A fusion that only moves blocks of bytes, or puts rows side by side, becomes copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from heron.analysis.fusion.moved_blocks import Block, moved_blocks
from heron.analysis.fusion.moved_rows import MovedRows, moved_rows
from heron.buffers.assignment import Slice
from heron.hlo.ir.instruction import Instruction
from heron.runtime.thunks import CopiesThunk, RowCopiesThunk, Thunk
from heron.trace import Decision

if TYPE_CHECKING:
    from heron.backends.lower import Lowering


def block_copies(lowering: Lowering, i: Instruction) -> list[Thunk] | None:
    """The copies of a fusion; None for one that does more, or that writes over what it reads."""
    moved = moved_blocks(i)
    rows = moved_rows(i) if moved is None else None
    if moved is None and rows is None:
        return None
    operands = [lowering.slice(o) for o in i.operands]
    outputs = [lowering.slice(i, index) for index, _ in i.shape.leaves()]
    if _overlap(outputs, operands):
        return None
    return (
        _rows(lowering, i, operands, outputs[0], rows) if rows else _blocks(lowering, i, operands, outputs, moved or [])
    )


def _rows(
    lowering: Lowering, i: Instruction, operands: Sequence[Slice], output: Slice, moved: MovedRows
) -> list[Thunk]:
    origins: list[Slice] = []
    for p in moved.pieces:
        array = operands[p.parameter.number]
        origins.append(Slice(array.allocation, array.offset + p.start, p.step * (moved.rows - 1) + p.size))
    steps, sizes = tuple(p.step for p in moved.pieces), tuple(p.size for p in moved.pieces)
    reason = f"{moved.rows} rows of {len(origins)} pieces: copies, no kernel"
    lowering.trace.decide(Decision(True, reason, "block-copies", i.name))
    return [RowCopiesThunk(tuple(origins), steps, sizes, output, moved.rows, i.name)]


def _blocks(
    lowering: Lowering,
    i: Instruction,
    operands: Sequence[Slice],
    outputs: Sequence[Slice],
    moved: Sequence[Sequence[Block]],
) -> list[Thunk]:
    origins: list[Slice] = []
    targets: list[Slice] = []
    for output, blocks in zip(outputs, moved, strict=True):
        at = output.offset
        for b in blocks:
            array = operands[b.parameter.number]
            origins.append(Slice(array.allocation, array.offset + b.start, b.size))
            targets.append(Slice(output.allocation, at, b.size))
            at += b.size
    reason = f"moves {len(targets)} blocks of neighbouring bytes: copies, no kernel"
    lowering.trace.decide(Decision(True, reason, "block-copies", i.name))
    return [CopiesThunk(tuple(origins), tuple(targets), i.name)] if targets else []


def _overlap(written: Sequence[Slice], read: Sequence[Slice]) -> bool:
    """Whether a slice that is written has bytes of one that is read."""
    ends: dict[tuple[int, bool], int] = {}  # of those that begin before, by allocation and whether they are written
    slices = sorted((s.allocation, s.offset, n < len(written), s.size) for n, s in enumerate([*written, *read]))
    for allocation, offset, is_written, size in slices:
        if size and offset < ends.get((allocation, not is_written), 0):
            return True
        ends[allocation, is_written] = max(ends.get((allocation, is_written), 0), offset + size)
    return False
