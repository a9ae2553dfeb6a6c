"""Finds the reads of a loop that run across memory, and the tiles of the loop that avoid them.

A loop stores along its last run of dimensions (the columns). A read whose neighbours in that direction lie far apart,
but whose neighbours along some other run (the rows) lie side by side, is *staged*: a tile of it is read along the rows,
turned in fast memory, and used along the columns. That is all a transpose is, wherever in the fusion it stands and
whatever reshapes lie between.

A window over a transposed array is many such reads. A CPU turns the fewer: where more reads lie across memory than
along it, its loop walks along *them*, and what is turned are the other reads and the outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod

from heron.analysis.fusion.fusion import Fusion, Output
from heron.analysis.fusion.loop_space import Read, Space, dimension_index, output_space, steps, walk
from heron.analysis.fusion.output_boxes import Groups, groups_of
from heron.analysis.fusion.partition import Partition, partition
from heron.analysis.indexing.expr import Expr
from heron.analysis.indexing.hlo_maps import Index, delinearize, linearize, memory_sizes, pad_index, to_memory
from heron.analysis.indexing.simplify import simplifier
from heron.hlo.facts import having
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import ElementType
from heron.records import dataclass
from heron.targets import WARP, Target

#: loops over fewer elements stay in cache however they are walked
MIN_ELEMENTS = 1 << 11
#: shorter rows or columns make no tile
MIN_LENGTH = 8
#: values staged by one kernel at most: each takes fast memory
MAX_STAGED = 6
_MOVES = having(Trait.PERMUTES)


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
    """A loop to be tiled: ``row`` is the run of the space staged values are read along, ``column`` the one that is
    walked.

    Outputs are stored along the last run. ``is_turned``: that is ``row``, so that outputs are turned, too.
    """

    space: Space
    row: int
    column: int
    staged: tuple[Staged, ...]

    @property
    def rows(self) -> int:
        return self.space.lengths[self.row]

    @property
    def columns(self) -> int:
        return self.space.lengths[self.column]

    @property
    def is_turned(self) -> bool:
        return self.row > self.column

    @property
    def outer(self) -> tuple[int, ...]:
        """Lengths of the runs that are neither rows nor columns."""
        return tuple(n for r, n in enumerate(self.space.lengths) if r not in (self.row, self.column))

    def place(self, outer: Expr, row: Expr, column: Expr) -> Index:
        """The point of the space at a row-major position in the outer runs, a row and a column."""
        at = list(delinearize(outer, self.outer))
        for run, e in sorted([(self.row, row), (self.column, column)], key=lambda found: found[0]):
            at.insert(run, e)
        return dimension_index(self.space.sizes, self.space.runs, at)

    def row_step(self, output: Output) -> int:
        """Elements of the output from one row to the next."""
        found = _addressed(output.instruction, self.space.index, self.space.sizes)
        assert found is not None
        return found[_inner(self.space, self.row)]

    def tiles(self, rows: int, columns: int) -> tuple[int, int, int]:
        """The number of tiles of that size: along the outer runs, the rows, the columns."""
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
    votes: dict[int, int] = {}
    for read in space.reads:
        row = _row(space, _address(read, space, partition))
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
    last = len(space.runs) - 1
    addressed = [(read, address) for read in reads if (address := _address(read, space, partition)) is not None]
    staged = _staged(space, addressed, row, last)
    others = None if early else _staged(space, addressed, last, row)
    if others is not None and len(others) + len(outputs) < min(len(staged), MAX_STAGED + 1):
        return Tiling(space, last, row, others)
    if not 0 < len(staged) <= MAX_STAGED:
        return f"{len(staged)} values to stage are too many"
    return Tiling(space, row, last, staged)


def _staged(space: Space, reads: Sequence[tuple[Read, list[int]]], row: int, column: int) -> tuple[Staged, ...]:
    """The reads, with their steps, whose neighbours along `row` lie side by side, and those along `column` apart."""
    inner = _inner(space, column)
    return tuple(
        Staged(read.instruction, read.index, found[inner]) for read, found in reads if _row(space, found, column) == row
    )


def _walk_early(
    outputs: Sequence[Output], space: Space, partition: Partition, stop: Callable[[Instruction, Index], bool]
) -> Sequence[Read]:
    return walk([o.instruction for o in outputs], space.index, space.sizes, partition, stop)


def _address(read: Read, space: Space, partition: Partition) -> list[int] | None:
    """The steps in memory of what is read; of a pad, those of what lies within its padding."""
    i, sizes = read.instruction, space.sizes
    if read.address is not None:
        return steps(read.address, len(sizes))
    if i.opcode == "pad":
        inside = walk([i.operands[0]], pad_index(i, read.index)[0], sizes, partition)
        if len(inside) == 1:
            return _address(inside[0], space, partition)
    return None if i.shape.is_tuple else _addressed(i, read.index, sizes)


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


def _row(space: Space, found: list[int] | None, column: int = -1) -> int | None:
    """The run along which a read with these steps finds its neighbours side by side, if its columns lie apart."""
    if found is None or found[_inner(space, column)] in (-1, 0, 1):
        return None
    rows = (r for r in range(len(space.runs)) if r != column % len(space.runs) and space.lengths[r] > 1)
    return next((r for r in rows if found[_inner(space, r)] == 1), None)


def is_turn(outputs: Sequence[Output], tiling: Tiling) -> bool:
    """Whether the outputs are one transposed operand and nothing else."""
    i = outputs[0].instruction
    while i.opcode in _MOVES:
        i = i.operands[0]
    alone = len(outputs) == 1 and len(tiling.staged) == 1
    return alone and i is tiling.staged[0].instruction and i.opcode == "parameter"


def turned_types(tiling: Tiling, outputs: Sequence[Output]) -> list[ElementType]:
    """The element types of all that a tile turns."""
    shapes = [s.instruction.shape for s in tiling.staged]
    return [s.element_type for s in (*shapes, *(o.shape for o in outputs if tiling.is_turned))]


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


# -- the kernel ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TransposeForm:
    """A kernel with tiles. ``tilings``: of the loops over these shapes; others are loops without tiles.

    ``plans`` (GPU): the loops whose tiles find room in shared memory; ``untiled``: outputs of the other loops.
    """

    partition: Partition
    groups: Groups
    tilings: dict[Shape, Tiling]
    plans: tuple[SharedTiles, ...] = ()
    untiled: tuple[tuple[int, ...], ...] = ()


def form_of(fusion: Fusion, target: Target) -> TransposeForm | str:
    """The tiles of a fusion's loops, or why there are none."""
    cut, groups = partition(fusion.roots), groups_of(fusion)
    tilings: dict[Shape, Tiling] = {}
    reasons: list[str] = []
    is_gpu = target.is_gpu
    for shape, members in groups.items():
        outputs = [fusion.outputs[n] for n in members]
        tiling = group_tiling(outputs, shape, cut, early=is_gpu, minimum=16)
        if isinstance(tiling, str):
            reasons.append(tiling)
        elif is_gpu or all(t.bits <= 64 for t in turned_types(tiling, outputs)):
            tilings[shape] = tiling
    form = TransposeForm(cut, groups, tilings)
    if is_gpu:
        form = _in_shared_memory(fusion, target, form, reasons)
    if form.plans or tilings and not is_gpu:
        return form
    return reasons[0] if reasons else "nothing to tile"


def _in_shared_memory(fusion: Fusion, target: Target, form: TransposeForm, reasons: list[str]) -> TransposeForm:
    """The form with those tilings that find room in shared memory; why others do not goes to `reasons`."""
    plans: list[SharedTiles] = []
    done: set[Shape] = set()
    room = target.static_shared_bytes
    for shape, tiling in form.tilings.items():
        side, taken = _side_outputs(form.groups, form.tilings, done, tiling)
        plan = _shared_tiles(fusion, target, tiling, form.groups[shape], side)
        if plan.shared_bytes > room:
            reasons.append(f"its tiles would need {plan.shared_bytes} bytes of shared memory")
            continue
        room -= plan.shared_bytes
        plans.append(plan)
        done |= {shape, *taken}
    untiled = tuple(tuple(members) for shape, members in form.groups.items() if shape not in done)
    return replace(form, plans=tuple(plans), untiled=untiled)


@dataclass(frozen=True, slots=True)
class SharedTiles:
    """The tiles of a loop in a GPU's shared memory.

    ``vector``: neighbouring elements a thread moves at once; ``members``: outputs along the columns.

    ``side``: numbers of the outputs stored while a value is staged, by the value's number.
    """

    tiling: Tiling
    vector: int
    members: tuple[int, ...]
    side: dict[int, tuple[int, ...]]

    @property
    def tile(self) -> int:
        return WARP * self.vector

    @property
    def grid(self) -> int:
        return prod(self.tiling.tiles(self.tile, self.tile))

    @property
    def outputs(self) -> tuple[int, ...]:
        """Numbers of all outputs that are stored."""
        return (*self.members, *(n for numbers in self.side.values() for n in numbers))

    @property
    def words(self) -> int:
        """Elements of shared memory a tile takes."""
        last = self.tile - 1
        return last * (self.tile + self.vector) + last // WARP * self.vector + self.tile

    @property
    def shared_bytes(self) -> int:
        return self.words * sum(max(1, s.instruction.shape.element_type.byte_size) for s in self.tiling.staged)

    def slot(self, column: Expr, row: Expr) -> Expr:
        """The place of an element of the tile in shared memory."""
        return column * (self.tile + self.vector) + column // WARP * self.vector + row


def _side_outputs(
    groups: Groups, tilings: Mapping[Shape, Tiling], done: set[Shape], tiling: Tiling
) -> tuple[dict[int, tuple[int, ...]], list[Shape]]:
    """The outputs that need no tiles and lie on the way of a staged value, by that value's number; and their shapes."""
    found: dict[int, tuple[int, ...]] = {}
    shapes: list[Shape] = []
    for shape, others in groups.items():
        if shape in tilings or shape in done:
            continue
        for n, staged in enumerate(tiling.staged):
            if staged.instruction.shape.dims == shape.dims and covers(staged, tiling.space):
                found[n] = (*found.get(n, ()), *others)
                shapes.append(shape)
                break
    return found, shapes


def _shared_tiles(
    fusion: Fusion, target: Target, tiling: Tiling, members: Sequence[int], side: dict[int, tuple[int, ...]]
) -> SharedTiles:
    outputs = [fusion.outputs[n].shape for n in members]
    shapes = [*outputs, *(s.instruction.shape for s in tiling.staged)]
    vector = max(1, 4 // max(max(1, s.element_type.byte_size) for s in shapes))
    while vector > 1:
        tiles = tiling.tiles(WARP * vector, WARP * vector)
        divides = tiling.rows % vector == 0 and tiling.columns % vector == 0
        if divides and tiles[0] * tiles[1] * tiles[2] >= 2 * target.cores:
            break
        vector //= 2
    return SharedTiles(tiling, vector, tuple(members), side)
