"""Tiles that a GPU's copy engine (TMA, from sm_90 on) fetches: parts of matrices, by descriptors.

A descriptor says where a matrix begins, how many rows and columns it has, and how far apart its rows are. A tile of it
is then one instruction of one thread, without addresses of elements, and comes in the order that matrix units read.
"""

from __future__ import annotations

from collections.abc import Callable

from heron.analysis.blocks.tiling import used
from heron.analysis.indexing.expr import Const, Dim, Expr
from heron.analysis.indexing.hlo_maps import Index, linearize, memory_sizes, to_memory
from heron.analysis.indexing.linear import linear_terms
from heron.hlo.ir.instruction import Instruction
from heron.records import dataclass
from heron.targets import Target

#: the first GPUs with the engine
OLDEST = 90
#: bytes that addresses, and the distance of rows, are multiples of; a row of a tile has as many at least
ALIGNED = 16
#: elements of a tile along a side at most
LONGEST = 256


@dataclass(frozen=True, slots=True)
class Descriptor:
    """The variables that rows and columns of a tile go along, elements from row to row, and those ahead of it all."""

    rows: int
    columns: int
    stride: int
    base: Expr


def has_engine(target: Target) -> bool:
    """Whether a machine has it."""
    return target.is_gpu and int(target.machine.removeprefix("sm_")) >= OLDEST


def address_of(i: Instruction, index: Index) -> Expr:
    """The offset of an element in memory, in elements; to be simplified."""
    return linearize(to_memory(i.shape, index), memory_sizes(i.shape))


def descriptor_of(i: Instruction, address: Expr, tile: Callable[[int], int]) -> Descriptor | str:
    """The descriptor for a tile of a parameter, or the reason for none. ``tile``: elements along a variable."""
    width, base, aligned = i.shape.element_type.byte_size, Const(0), True
    terms, constant = linear_terms(address)
    moving: dict[int, int] = {}
    for atom, factor in terms.items():
        if not any(tile(v) > 1 for v in used((atom,))):
            base = base + atom * factor
            aligned &= factor * width % ALIGNED == 0
        elif isinstance(atom, Dim):
            moving[atom.index] = factor
        else:
            return "its elements do not lie in equal steps"
    if len(moving) != 2:
        return f"its tile has {len(moving)} of 2 dimensions"
    columns = next((v for v, factor in moving.items() if factor == 1), None)
    if columns is None:
        return "no elements of its tile lie side by side"
    (rows,) = moving.keys() - {columns}
    if moving[rows] * width % ALIGNED:
        return f"its rows are {moving[rows] * width} bytes apart, no multiple of {ALIGNED}"
    if not aligned or constant * width % ALIGNED:
        return f"it begins where no multiple of {ALIGNED} bytes is"
    if tile(columns) * width < ALIGNED or max(tile(columns), tile(rows)) > LONGEST:
        return f"its tile of {tile(rows)} x {tile(columns)} has not {ALIGNED} bytes to {LONGEST} elements"
    return Descriptor(rows, columns, moving[rows], base + Const(constant))
