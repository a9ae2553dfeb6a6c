"""Copies in the native program: one after the other, or by a table of blocks that the threads of a pool share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from heron.buffers.assignment import Slice
from heron.codegen.native.share import write_range
from heron.codegen.native.tables import write_numbers

if TYPE_CHECKING:
    from heron.codegen.native.program import ProgramWriter

#: bytes of a copy that are one work item, and the bytes from which on threads share a copy
_BLOCK = 1 << 16
SHARED = 8 * _BLOCK
#: copies that are written out one by one
_FEW = 16
#: work items that large copies are cut into, about
_ITEMS = 128

#: blocks ``lo`` to ``hi`` of a table: the number of the array to copy from and the bytes before the block, those of the
#: array to copy to, and the size of the block
_BLOCKS = """%heron_block = type { i64, i64, i64, i64, i64 }
define internal void @heron_copy_blocks(ptr %args, i64 %lo, i64 %hi) nounwind {
entry:
  %table = load ptr, ptr %args
  %arrays = getelementptr ptr, ptr %args, i64 1
  br label %head
head:
  %n = phi i64 [ %lo, %entry ], [ %next, %body ]
  %more = icmp slt i64 %n, %hi
  br i1 %more, label %body, label %done
body:
  %block = getelementptr %heron_block, ptr %table, i64 %n
  %words = load %heron_block, ptr %block
  %from.number = extractvalue %heron_block %words, 0
  %from.before = extractvalue %heron_block %words, 1
  %to.number = extractvalue %heron_block %words, 2
  %to.before = extractvalue %heron_block %words, 3
  %size = extractvalue %heron_block %words, 4
  %from.at = getelementptr ptr, ptr %arrays, i64 %from.number
  %from.array = load ptr, ptr %from.at
  %from = getelementptr i8, ptr %from.array, i64 %from.before
  %to.at = getelementptr ptr, ptr %arrays, i64 %to.number
  %to.array = load ptr, ptr %to.at
  %to = getelementptr i8, ptr %to.array, i64 %to.before
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %size, i1 false)
  %next = add i64 %n, 1
  br label %head
done:
  ret void
}"""


class _Block(NamedTuple):
    """Bytes to copy, from an allocation to an allocation: the numbers of these, and the bytes before the block."""

    origin: int
    from_byte: int
    target: int
    to_byte: int
    size: int


def write_copies(w: ProgramWriter, copies: Sequence[tuple[Slice, Slice]]) -> None:
    """Copy slices, each from the first to the second of a pair: few small ones one by one, others by a table."""
    size = sum(target.size for _, target in copies)
    is_shared = w.pool is not None and size >= SHARED
    if len(copies) <= _FEW and not is_shared:
        for origin, target in copies:
            if target.size:
                w.copy(w.pointer(target), w.pointer(origin), target.size)
        return
    w.helpers.setdefault("heron_copy_blocks", _BLOCKS)
    blocks = list(_cut(copies, max(_BLOCK, size // _ITEMS)))
    ends: dict[int, int] = {}
    for b in blocks:
        for allocation, end in ((b.origin, b.from_byte + b.size), (b.target, b.to_byte + b.size)):
            ends[allocation] = max(ends.get(allocation, 0), end)
    numbers = {allocation: n for n, allocation in enumerate(ends)}
    words = [x for b in blocks for x in (numbers[b.origin], b.from_byte, numbers[b.target], b.to_byte, b.size)]
    table = write_numbers(w, "blocks", words)
    arrays = [w.pointer(Slice(allocation, 0, end)) for allocation, end in ends.items()]
    grain = max(1, len(blocks) * _BLOCK // size) if is_shared else len(blocks)
    write_range(w, "heron_copy_blocks", [table, *arrays], len(blocks), grain)


def _cut(copies: Sequence[tuple[Slice, Slice]], most: int) -> Iterator[_Block]:
    """The blocks of copies, of so many bytes at most."""
    for origin, target in copies:
        for n in range(0, target.size, most):
            size = min(most, target.size - n)
            yield _Block(origin.allocation, origin.offset + n, target.allocation, target.offset + n, size)
