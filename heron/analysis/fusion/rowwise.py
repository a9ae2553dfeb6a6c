"""The parts of a row-wise kernel: reductions of rows, and values computed from a row and its reductions.

A softmax or a layer norm takes a few reductions of each row, one needing the other, and a loop over the row at the end:
the stages of the kernel. A later stage needs elements that an earlier one has computed; the GPU keeps those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from heron.analysis.fusion.fusion import Fusion, row_major
from heron.analysis.fusion.loop_space import contiguous_runs
from heron.analysis.fusion.partition import Partition, own_index, partition
from heron.analysis.fusion.reduce_order import in_any_order
from heron.analysis.fusion.reduction import arrays_of
from heron.analysis.indexing.expr import dims
from heron.hlo.facts import is_leaf
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.records import dataclass

#: elements a row must have: reductions of shorter ones cost nothing where they are needed
MIN_ROW = 2


@dataclass(frozen=True, slots=True)
class RowwiseForm:
    """A row-wise kernel: the first ``kept`` of the dimensions ``dims`` number the rows.

    ``reduces``: the reductions of rows, in order of dependence. ``wide``: numbers of the outputs of the arrays' shape;
    ``narrow``: numbers of the outputs with one element for each row. ``cut``: the functions of the kernel, none of
    which needs a reduction.
    """

    dims: tuple[int, ...]
    kept: int
    reduces: tuple[Instruction, ...]
    wide: tuple[int, ...]
    narrow: tuple[int, ...]
    cut: Partition

    @property
    def sizes(self) -> tuple[int, ...]:
        """The dimensions that number the rows."""
        return self.dims[: self.kept]

    @property
    def count(self) -> int:
        """The number of rows."""
        return prod(self.sizes)

    @property
    def row_sizes(self) -> tuple[int, ...]:
        """The dimensions of a row."""
        return self.dims[self.kept :]

    @property
    def row(self) -> int:
        """Elements of a row."""
        return prod(self.row_sizes)


def rows_of(fusion: Fusion) -> RowwiseForm | None:
    """The row-wise kernel of a fusion; None if it is none, or if no value of a row needs a reduction of that row."""
    order = fusion.computation.post_order()
    reduces = tuple(i for i in order if i.opcode == "reduce")
    if not _same_rows(reduces):
        return None
    dims = reduces[0].operands[0].shape.dims
    kept = len(dims) - len(reduces[0].dimensions)
    wide = tuple(n for n, o in enumerate(fusion.outputs) if o.shape.dims == dims)
    narrow = tuple(n for n, o in enumerate(fusion.outputs) if o.shape.dims == dims[:kept])
    if len(wide) + len(narrow) != len(fusion.outputs) or any(o.part is not None for o in fusion.outputs):
        return None
    if prod(dims[kept:]) < MIN_ROW or not prod(dims) or not row_major(fusion):
        return None
    roots = [o.instruction for o in fusion.outputs]
    arrays = [a for i in reduces for a in arrays_of(i)]
    cut = partition(list(dict.fromkeys([*roots, *arrays])), provided=reduces)
    if not all(_by_rows(i, dims[:kept], cut) for i in reduces) or not _needed(fusion, wide, reduces):
        return None
    return RowwiseForm(dims, kept, reduces, wide, narrow, cut)


def runs_of_row(fusion: Fusion, rows: RowwiseForm) -> tuple[tuple[int, ...], ...]:
    """The dimensions of a row, those together that all arrays step through as one."""
    count = len(rows.dims)
    if count - rows.kept == 1:
        return ((rows.kept,),)
    roots = [*(fusion.outputs[n].instruction for n in rows.wide), *(a for i in rows.reduces for a in arrays_of(i))]
    runs = contiguous_runs(roots, dims(count), rows.dims, rows.cut)
    inside = (tuple(d for d in run if d >= rows.kept) for run in runs)
    return tuple(run for run in inside if run)


def _same_rows(reduces: Sequence[Instruction]) -> bool:
    """Whether there are reduces, and all combine the last dimensions of arrays of one size, in any order."""
    if not reduces or not all(map(in_any_order, reduces)):
        return False
    dims, count = reduces[0].operands[0].shape.dims, len(reduces[0].dimensions)
    row = tuple(range(len(dims) - count, len(dims)))
    return all(i.operands[0].shape.dims == dims and tuple(sorted(i.dimensions)) == row for i in reduces)


def _by_rows(i: Instruction, rows: tuple[int, ...], cut: Partition) -> bool:
    """Whether a reduction is read in the kernel's own loops alone, and there for the row they are at."""
    own = own_index(rows)
    return all(isinstance(space, tuple) and space[0] == "entry" and index == own for space, index in cut.accesses[i])


def _needed(fusion: Fusion, wide: Sequence[int], reduces: Sequence[Instruction]) -> bool:
    """Whether an output along the row, or what is reduced, is computed from a reduction."""
    stack = [fusion.outputs[n].instruction for n in wide] + [a for i in reduces for a in arrays_of(i)]
    seen: set[Instruction] = set()
    while stack:
        i = stack.pop()
        if i in reduces:
            return True
        if i not in seen:
            seen.add(i)
            stack.extend(i.operands)
    return False


@dataclass(frozen=True, slots=True)
class Stage:
    """One walk along the row.

    ``reduces``: whose elements it combines. ``outputs``: numbers of those it stores. ``spread``: broadcasts of
    values of the row (a mean, a scale). ``given``: elements an earlier stage has computed and this one needs
    again; ``saved``: those it computes itself for a later one.
    """

    reduces: tuple[Instruction, ...]
    outputs: tuple[int, ...]
    spread: tuple[Instruction, ...]
    given: tuple[Instruction, ...]
    saved: tuple[Instruction, ...]


def stages_of(
    fusion: Fusion, rows: RowwiseForm, is_kept: Callable[[Instruction], bool] = lambda _: True
) -> list[Stage]:
    """The stages of a row-wise kernel, in order: each reduction as early as what it needs allows, but outputs along the
    row in the last, since they may overwrite what is read. ``is_kept``: whether to save an instruction's elements that
    are needed again; others are computed again."""
    order = fusion.computation.post_order()
    level, trivial = _levels(order), _trivial(order)
    wide = [fusion.outputs[n].instruction for n in rows.wide]
    last = max([level[i] - 1 for i in rows.reduces] + [level[i] for i in wide])
    first: dict[Instruction, int] = {}
    given: list[dict[Instruction, None]] = []
    spread: list[list[Instruction]] = []
    for number in range(last + 1):
        roots = [a for i in rows.reduces if level[i] - 1 == number for a in arrays_of(i)]
        again, computed = _walk([*roots, *(wide if number == last else ())], rows.dims, first)
        first |= {i: number for i in computed if i not in trivial and is_kept(i)}
        given.append(again)
        spread.append([i for i in computed if _spreads_row(i, rows)])
    return [
        Stage(
            tuple(i for i in rows.reduces if level[i] - 1 == number),
            rows.wide if number == last else (),
            tuple(spread[number]),
            tuple(given[number]),
            tuple(dict.fromkeys(i for later in given[number + 1 :] for i in later if first[i] == number)),
        )
        for number in range(last + 1)
    ]


def kept_words(stages: Sequence[Stage]) -> int:
    """32-bit words that are kept of an element of the row between two stages, at most."""
    alive: dict[Instruction, None] = {}
    most = 0
    for number, stage in enumerate(stages):
        alive |= dict.fromkeys(stage.saved)
        needed = {i for later in stages[number + 1 :] for i in later.given}
        alive = {i: None for i in alive if i in needed}
        most = max(most, sum(-(-i.shape.element_type.bits // 32) for i in alive))
    return most


def _levels(order: Sequence[Instruction]) -> dict[Instruction, int]:
    """The length of the chain of reductions that an instruction depends on, a reduction itself included. `order` has
    operands first."""
    level: dict[Instruction, int] = {}
    for i in order:
        level[i] = max((level[o] for o in i.operands), default=0) + (i.opcode == "reduce")
    return level


def _trivial(order: Sequence[Instruction]) -> set[Instruction]:
    """Values that cost less to recompute than a register to keep: scalars, values of the row, short arrays of all rows,
    and simple arithmetic of those."""
    found: set[Instruction] = set()
    for i in order:
        if i.opcode == "broadcast":
            simple = i.operands[0].shape.num_elements < i.shape.num_elements
        elif i.op.is_elementwise:
            simple = not i.has(Trait.TRANSCENDENTAL) and all(o in found for o in i.operands)
        else:
            simple = is_leaf(i) and i.opcode != "parameter"
        if simple:
            found.add(i)
    return found


def _walk(
    roots: Sequence[Instruction], dims: tuple[int, ...], known: dict[Instruction, int]
) -> tuple[dict[Instruction, None], dict[Instruction, None]]:
    """Of what `roots` need at the row's own places: what is `known`, and what is computed."""
    given: dict[Instruction, None] = {}
    computed: dict[Instruction, None] = {}
    stack = list(roots)
    while stack:
        i = stack.pop()
        if i in known:
            given[i] = None
        elif i not in computed:
            computed[i] = None
            if i.op.is_elementwise:
                stack += [o for o in i.operands if o.shape.dims == dims]
    return given, computed


def _spreads_row(i: Instruction, rows: RowwiseForm) -> bool:
    """Whether every element of the row is the same value, one that is computed."""
    return i.opcode == "broadcast" and i.operands[0].opcode != "constant" and all(d < rows.kept for d in i.dimensions)
