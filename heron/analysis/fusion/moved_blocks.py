"""Fusions that only move blocks of neighbouring bytes: arrays joined one behind the other, parts of arrays.

They need no kernel on a CPU, whose copies are as fast as any loop and take no compiling.

    a = f32[3] parameter(0)
    b = f32[5] parameter(1)
    part = f32[4] slice(b), slice={[1:5]}
    ROOT r = f32[7] concatenate(a, part), dimensions={0}      12 bytes of a to byte 0, 16 from byte 4 of b to byte 12
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import NamedTuple

from heron.analysis.fusion.fusion import outputs_of
from heron.analysis.fusion.sliced_product import place_of
from heron.analysis.indexing.hlo_maps import memory_order
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape

#: blocks that a concatenation may be made of: each is 40 bytes of a table
MOST = 1 << 16


class Block(NamedTuple):
    """``size`` bytes of a parameter from byte ``start`` on."""

    parameter: Instruction
    start: int
    size: int


def moved_blocks(i: Instruction) -> list[list[Block]] | None:
    """The blocks that each output of a fusion is made of, one behind the other; None where it does more, or moves
    single elements of larger rows."""
    known: dict[Instruction, _Joined | None] = {}
    found: list[list[Block]] = []
    for o in outputs_of(i.attrs["calls"].root):
        blocks = _blocks(o.instruction, known) if o.part is None else None
        if blocks is None:
            return None
        found.append(blocks)
    return found


def joins_blocks(i: Instruction) -> bool:
    """Whether the operands of a concatenation lie one behind the other in memory."""
    order = memory_order(i.shape)
    before = order[: order.index(i.dimensions[0])]
    return all(i.shape.dims[d] == 1 for d in before) and all(memory_order(o.shape) == order for o in i.operands)


class _Joined(NamedTuple):
    """The blocks of a concatenation, and the bytes before each."""

    blocks: list[Block]
    before: list[int]


def _blocks(i: Instruction, known: dict[Instruction, _Joined | None]) -> list[Block] | None:
    """The blocks of an array that consists of some."""
    place, size = place_of(i), _bytes(i.shape)
    source = place.array
    if place.starts or size is None or _bytes(source.shape) is None:
        return None
    if source.opcode == "parameter":
        return [Block(source, place.offset, size)] if size else []
    if source.opcode != "concatenate":
        return None
    if source not in known:
        known[source] = _joined(source, known)
    joined = known[source]
    return None if joined is None else _part(joined, place.offset, place.offset + size)


def _joined(i: Instruction, known: dict[Instruction, _Joined | None]) -> _Joined | None:
    """The blocks of a concatenation along the slowest of its dimensions in memory."""
    if not joins_blocks(i):
        return None
    blocks: list[Block] = []
    for o in i.operands:
        found = _blocks(o, known)
        if found is None or len(blocks) + len(found) > MOST:
            return None
        blocks += found
    return _Joined(blocks, [*accumulate((b.size for b in blocks), initial=0)])


def _part(joined: _Joined, begin: int, end: int) -> list[Block]:
    """The blocks of some of a concatenation's bytes."""
    found: list[Block] = []
    n = bisect_right(joined.before, begin) - 1
    while begin < end:
        block, skipped = joined.blocks[n], begin - joined.before[n]
        size = min(block.size - skipped, end - begin)
        found.append(Block(block.parameter, block.start + skipped, size))
        begin += size
        n += 1
    return found


def _bytes(shape: Shape) -> int | None:
    """The bytes of an array of whole bytes that has one size."""
    if not shape.is_array or shape.element_type.bits % 8 or any(shape.dynamic):
        return None
    return shape.num_elements * shape.element_type.bits // 8
