"""The part of a sorted row that a GPU block holds at once."""

from __future__ import annotations

from collections.abc import Sequence

from heron.hlo.ir.instruction import Instruction

#: elements of a tile at most, and the bytes of shared memory it may take: what every GPU gives a block unasked
MAX_TILE = 8192
TILE_BYTES = 48 << 10
#: registers for the elements a thread holds while it does several steps, and how many steps that are at most
HELD_WORDS = 32
MOST_STEPS = 4


def tile_of(i: Instruction) -> int:
    """Elements of a tile of the sort `i`: a power of two."""
    return tile_for(sum(o.shape.element_type.byte_size for o in i.operands))


def tile_for(bytes_each: int) -> int:
    """Elements of a tile of a sort whose operands have that many bytes an element."""
    tile = MAX_TILE
    while tile > 2 and tile * bytes_each > TILE_BYTES:
        tile //= 2
    return tile


def fits_tile(i: Instruction) -> bool:
    """Whether a row of the sort `i` is one tile: one kernel sorts it, from where its elements are to where they go."""
    return i.operands[0].shape.dims[i.attrs["dimensions"][0]] <= tile_of(i)


def steps_together(sizes: Sequence[int]) -> int:
    """The number of steps over global memory that a thread does with its elements; ``sizes``: bytes of each operand."""
    words = sum(max(1, size // 4) for size in sizes)
    return min(MOST_STEPS, max(1, (HELD_WORDS // words).bit_length() - 1))
