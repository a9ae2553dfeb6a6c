"""Scratch memory of sorts on the CPU, among the buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.buffers.assign import ALIGNMENT
from heron.buffers.assignment import Slice
from heron.codegen.emitters.sort.room import room_of
from heron.hlo.ir.instruction import Instruction

if TYPE_CHECKING:
    from heron.backends.lower import Lowering


def scratch_bytes(sort: Instruction) -> int:
    """The bytes that the kernel of a sort is given."""
    return sum(_sizes(sort))


def room(lowering: Lowering, sort: Instruction) -> list[Slice]:
    """The places of the scratch arrays that the kernel of a sort is given."""
    whole = lowering.buffers.scratch.get(sort)
    if whole is None:
        return []
    found, offset = list[Slice](), whole.offset
    for shape, size in zip(room_of(sort), _sizes(sort), strict=True):
        found.append(Slice(whole.allocation, offset, shape.byte_size))
        offset += size
    return found


def _sizes(sort: Instruction) -> list[int]:
    """The bytes of each scratch array, up to the next cache line."""
    line = ALIGNMENT["cpu"]
    return [-(-s.byte_size // line) * line for s in room_of(sort)]
