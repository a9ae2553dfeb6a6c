"""Which reads of a loop run across memory, and how to tile the loop so that they need not.

A loop stores along its last run of dimensions (the columns). A read whose neighbours in that direction lie far apart,
but whose neighbours along some other run (the rows) lie side by side, is *staged*: a tile of it is read along the rows,
turned in fast memory, and used along the columns. That is all a transpose is, wherever in the fusion it stands and
whatever reshapes lie between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from heron.analysis.fusion.fusion import Fusion, Output
from heron.analysis.fusion.loop_space import Read, Space, dimension_index, output_space, steps, walk
from heron.analysis.fusion.partition import Partition
from heron.analysis.indexing.expr import Expr
from heron.analysis.indexing.hlo_maps import Index, delinearize, linearize, memory_sizes, to_memory
from heron.analysis.indexing.simplify import simplifier
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape

#: loops over fewer elements stay in cache however they are walked
MIN_ELEMENTS = 1 << 11
#: shorter rows or columns make no tile
MIN_LENGTH = 8
#: values staged by one kernel at most: each takes fast memory
MAX_STAGED = 6
_MOVES = frozenset({"bitcast", "reshape", "transpose", "copy"})


@dataclass(frozen=True, slots=True)
class Staged:
    """A value to stage: an instruction at `index` over the space's dimensions.

    ``column_step``: elements of the instruction's array from one column to the next.
    """

    instruction: Instruction
    index: Index
    column_step: int


@dataclass(frozen=True, slots=True)
class Tiling:
    """A loop to be tiled: ``row`` is the run of the space staged values are read along; the last run is the columns."""

    space: Space
    row: int
    staged: tuple[Staged, ...]

    @property
    def rows(self) -> int:
        return self.space.lengths[self.row]

    @property
    def columns(self) -> int:
        return self.space.lengths[-1]

    @property
    def outer(self) -> tuple[int, ...]:
        """Lengths of the runs that are neither rows nor columns."""
        return tuple(n for r, n in enumerate(self.space.lengths[:-1]) if r != self.row)

    def place(self, outer: Expr, row: Expr, column: Expr) -> Index:
        """The point of the space at a row-major position in the outer runs, a row and a column."""
        at = list(delinearize(outer, self.outer))
        at.insert(self.row, row)
        return dimension_index(self.space.sizes, self.space.runs, [*at, column])

    def row_step(self, output: Output) -> int:
        """Elements of the output from one row to the next."""
        found = _addressed(output.instruction, self.space.index, self.space.sizes)
        assert found is not None
        return found[_inner(self.space, self.row)]

    def tiles(self, rows: int, columns: int) -> tuple[int, int, int]:
        """How many tiles of that size: along the outer runs, the rows, the columns."""
        return prod(self.outer), -(-self.rows // rows), -(-self.columns // columns)


def group_tiling(
    outputs: Sequence[Output], shape: Shape, partition: Partition, *, early: bool, minimum: int = MIN_LENGTH
) -> Tiling | str:
    """The tiling of the loop over `shape` that stores `outputs`, or why it should not be tiled.

    ``early``: stage what is first seen to be read across memory, with all that is computed for it; otherwise stage
    parameters (and results of the partition's functions), and compute along the columns.
    """
    if prod(shape.dims) < MIN_ELEMENTS:
        return "too few elements to tile"
    space = output_space(outputs, shape, partition)
    if len(space.runs) < 2:
        return "every operand is read in the order it lies in memory"
    rank = len(space.sizes)
    votes: dict[int, int] = {}
    for read in space.reads:
        row = _row(space, _address(read, rank, space.sizes))
        if row is not None:
            votes[row] = votes.get(row, 0) + read.instruction.shape.byte_size
    if not votes:
        return "no operand is read across the order it lies in memory"
    row = max(votes, key=lambda r: votes[r])
    if min(space.lengths[row], space.lengths[-1]) < minimum:
        return f"a tile of {space.lengths[row]} rows of {space.lengths[-1]} elements is too small"

    def across(i: Instruction, index: Index) -> bool:
        return i.opcode not in _MOVES and _row(space, _addressed(i, index, space.sizes)) == row

    reads = _walk_early(outputs, space, partition, across) if early else space.reads
    staged: list[Staged] = []
    for read in reads:
        address = _address(read, rank, space.sizes)
        if _row(space, address) == row and address is not None:
            staged.append(Staged(read.instruction, read.index, address[_inner(space, -1)]))
    if not 0 < len(staged) <= MAX_STAGED:
        return f"{len(staged)} values to stage are too many"
    return Tiling(space, row, tuple(staged))


def _walk_early(
    outputs: Sequence[Output], space: Space, partition: Partition, stop: Callable[[Instruction, Index], bool]
) -> Sequence[Read]:
    return walk([o.instruction for o in outputs], space.index, space.sizes, partition, stop)


def _address(read: Read, rank: int, sizes: tuple[int, ...]) -> list[int] | None:
    if read.address is not None:
        return steps(read.address, rank)
    return None if read.instruction.shape.is_tuple else _addressed(read.instruction, read.index, sizes)


def _addressed(i: Instruction, index: Index, sizes: tuple[int, ...]) -> list[int] | None:
    """The steps of the place `i` would have in memory, were it stored."""
    if i.shape.is_tuple or len(index) != i.shape.rank:
        return None
    ranges = simplifier(tuple((0, n - 1) for n in sizes))
    address = ranges.simplify(linearize(to_memory(i.shape, index), memory_sizes(i.shape)))
    return steps(address, len(sizes))


def _inner(space: Space, run: int) -> int:
    """The innermost dimension of a run that has more than one element."""
    return max((d for d in space.runs[run] if space.sizes[d] > 1), default=space.runs[run][-1])


def _row(space: Space, found: list[int] | None) -> int | None:
    """The run along which a read with these steps finds its neighbours side by side, if its columns lie apart."""
    if found is None or found[_inner(space, -1)] in (-1, 0, 1):
        return None
    rows = (r for r in range(len(space.runs) - 1) if space.lengths[r] > 1)
    return next((r for r in rows if found[_inner(space, r)] == 1), None)


def is_turn(outputs: Sequence[Output], tiling: Tiling) -> bool:
    """Whether the outputs are one transposed operand and nothing else."""
    i = outputs[0].instruction
    while i.opcode in _MOVES:
        i = i.operands[0]
    alone = len(outputs) == 1 and len(tiling.staged) == 1
    return alone and i is tiling.staged[0].instruction and i.opcode == "parameter"


def covers(staged: Staged, space: Space) -> bool:
    """Whether the loop reads each element of the staged instruction's array exactly once."""
    found = _addressed(staged.instruction, staged.index, space.sizes)
    if found is None or any(s < 0 for s in found):
        return False
    expected = 1
    for step, size in sorted((s, n) for s, n in zip(found, space.sizes, strict=True) if n > 1):
        if step != expected:
            return False
        expected *= size
    return expected == staged.instruction.shape.num_elements


def candidate(fusion: Fusion) -> Instruction | None:
    """An op of the fusion that changes which dimension lies innermost; cheap, to choose emitters by."""
    for i in fusion.computation.instructions:
        if i.opcode == "transpose" and i.shape.rank > 1 and i.dimensions[-1] != i.shape.rank - 1:
            return i
        if i.opcode in ("copy", "bitcast", "parameter") and _turned(i.shape):
            return i
    return None


def _turned(shape: Shape) -> bool:
    return shape.is_array and shape.layout is not None and not shape.layout.is_default
