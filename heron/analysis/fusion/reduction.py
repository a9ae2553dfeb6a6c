"""The parts of a fusion with reduces: the reduces, the walk over their dimensions, the ops around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod
from typing import TypeAlias

from heron.analysis.fusion.fusion import Fusion, is_pointwise
from heron.analysis.fusion.loop_space import joined_runs, steps, walk
from heron.analysis.fusion.partition import Partition
from heron.analysis.fusion.reduce_order import along_columns, in_any_order
from heron.analysis.indexing.expr import Const, Expr, dims
from heron.analysis.indexing.hlo_maps import (
    Index,
    delinearize,
    from_memory,
    linearize,
    memory_sizes,
    moves_elements,
    to_memory,
)
from heron.analysis.indexing.simplify import simplifier
from heron.hlo.facts import having
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import Shape
from heron.records import dataclass

#: ops between a reduce and an output that only move elements
MOVES = having(Trait.PERMUTES) | {"get-tuple-element"}

#: instructions made from results, and the index of theirs that belongs to the result's element at (d0, d1, ...)
Places: TypeAlias = dict[Instruction, Index]


@dataclass(frozen=True, slots=True)
class Reduction:
    """One reduction: its input and its results.

    ``order``: the dimensions of the reduced arrays in loop order. The other fields count dimensions in that order:
    ``sizes`` of the dimensions, ``reduced``: those summed over. ``side``: numbers of the outputs of the arrays' shape;
    ``after``: numbers of the outputs made from the results. ``places``: the instructions between results and outputs,
    operands first, each with the index of the result's element that it reads, over the results' dimensions.
    """

    reduces: tuple[Instruction, ...]
    order: tuple[int, ...]
    sizes: tuple[int, ...]
    reduced: tuple[int, ...]
    side: tuple[int, ...]
    after: tuple[int, ...]
    places: Places

    @property
    def arrays(self) -> list[Instruction]:
        """The arrays that are reduced."""
        return [a for i in self.reduces for a in arrays_of(i)]

    @property
    def kept(self) -> tuple[int, ...]:
        """The dimensions that stay."""
        return tuple(d for d in range(len(self.sizes)) if d not in self.reduced)

    @property
    def kept_sizes(self) -> tuple[int, ...]:
        return tuple(self.sizes[d] for d in self.kept)

    @property
    def rows(self) -> int:
        """The number of results."""
        return prod(self.kept_sizes)

    @property
    def row(self) -> int:
        """The number of elements of one result."""
        return prod(self.sizes[d] for d in self.reduced)

    def source(self, index: Index) -> Index:
        """The index into the arrays at a point of the walk."""
        found: list[Expr] = [Const(0)] * len(index)
        for d, e in zip(self.order, index, strict=True):
            found[d] = e
        return tuple(found)

    def result(self, index: Index) -> Index:
        """The index into the results where the kept dimensions of the walk stand at `index`."""
        by_dimension = sorted(zip((self.order[k] for k in self.kept), index, strict=True), key=lambda pair: pair[0])
        return tuple(e for _, e in by_dimension)

    def place(self, i: Instruction, index: Index) -> Index:
        """The index of the element of `i`, an output or on the way to one, that goes with the result at `index`."""
        found = self.places.get(i)
        if found is None:  # computed from no result: as many elements, in their order
            return delinearize(linearize(index, self.result_sizes), i.shape.dims)
        return tuple(x.substitute(index) for x in found)

    @property
    def result_sizes(self) -> tuple[int, ...]:
        """The dimensions of the results."""
        sizes = dict(zip(self.order, self.sizes, strict=True))
        gone = {self.order[k] for k in self.reduced}
        return tuple(sizes[d] for d in range(len(self.sizes)) if d not in gone)

    def walked(self, order: Sequence[int]) -> Reduction:
        """The same reduction with its dimensions walked in another order."""
        sizes = dict(zip(self.order, self.sizes, strict=True))
        gone = {self.order[k] for k in self.reduced}
        reduced = tuple(k for k, d in enumerate(order) if d in gone)
        return replace(self, order=tuple(order), sizes=tuple(sizes[d] for d in order), reduced=reduced)


@dataclass(frozen=True, slots=True)
class Axis:
    """Neighbouring dimensions walked as one: all reduced, or all kept."""

    dims: tuple[int, ...]
    length: int
    reduced: bool


def axes(runs: Sequence[Sequence[int]], reduction: Reduction) -> list[Axis]:
    """The contiguous runs, cut where reduced dimensions meet kept ones; axes of length 1 are left out."""
    found: list[Axis] = []
    for run in runs:
        group: list[int] = []
        for d in run:
            if reduction.sizes[d] == 1:
                continue
            if group and (group[-1] in reduction.reduced) != (d in reduction.reduced):
                found.append(_axis(group, reduction))
                group = []
            group.append(d)
        if group:
            found.append(_axis(group, reduction))
    return found


def _axis(group: Sequence[int], reduction: Reduction) -> Axis:
    return Axis(tuple(group), prod(reduction.sizes[d] for d in group), group[0] in reduction.reduced)


@dataclass(frozen=True, slots=True)
class ReductionForm:
    """A fusion with reduces: reductions of different arrays or dimensions, and the outputs that are in none."""

    reductions: tuple[Reduction, ...]
    loose: tuple[int, ...]

    @property
    def parts(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of the outputs that have work items, or blocks, in common."""
        return (*((*r.side, *r.after) for r in self.reductions), *((n,) for n in self.loose))


def arrays_of(i: Instruction) -> list[Instruction]:
    """The arrays that a reduce combines."""
    return i.operands[: len(i.operands) // 2]


def groups_of(fusion: Fusion) -> dict[tuple[tuple[int, ...], tuple[int, ...]], list[Instruction]]:
    """The reduces a fusion is about, by what they reduce: sizes of the array and its reduced dimensions."""
    heroes: dict[Instruction, None] = {}
    for root in fusion.roots:
        _find_heroes(root, heroes)
    groups: dict[tuple[tuple[int, ...], tuple[int, ...]], list[Instruction]] = {}
    for h in heroes:
        groups.setdefault((h.operands[0].shape.dims, tuple(sorted(h.dimensions))), []).append(h)
    return groups


def form_of(fusion: Fusion, in_order: bool = False) -> ReductionForm | str:
    """The reductions a fusion consists of, or why it is of no form this emitter knows.

    ``in_order``: whether columns may be combined by functions that need the order of elements.
    """
    groups = groups_of(fusion)
    refused = next(filter(None, (_refusal(sizes, members, in_order) for (sizes, _), members in groups.items())), None)
    if refused is not None:
        return refused
    order = fusion.computation.post_order()
    places = {key: _places(order, members) for key, members in groups.items()}
    above = {key: _above(order, members) for key, members in groups.items()}
    after: dict[object, list[int]] = {key: [] for key in groups}
    side: dict[object, list[int]] = {key: [] for key in groups}
    loose: list[int] = []
    for n, output in enumerate(fusion.outputs):
        i = output.instruction
        reached = [key for key in groups if i in above[key]]
        if len(reached) > 1:
            return f"'{i.name}' is made from reductions of different arrays or dimensions"
        if reached:
            if i not in places[reached[0]]:
                return f"'{i.name}' reads a reduction at other places than its own"
            after[reached[0]].append(n)
            continue
        dims, count = output.shape.dims, output.shape.num_elements
        walked = next((key for key in groups if dims == key[0]), None)
        beside = next((key for key in groups if count == _results(*key)), None)
        if walked is not None:
            side[walked].append(n)
        elif beside is not None and output.part is None:
            after[beside].append(n)
        elif count:
            loose.append(n)
    if not groups:
        return "there is no reduce"
    found: list[Reduction] = []
    for key, members in groups.items():
        sizes, reduced = key
        every = tuple(range(len(sizes)))
        found.append(Reduction(tuple(members), every, sizes, reduced, tuple(side[key]), tuple(after[key]), places[key]))
    return ReductionForm(tuple(found), tuple(loose))


def _refusal(sizes: tuple[int, ...], members: Sequence[Instruction], in_order: bool) -> str:
    """Why this emitter does not combine arrays of these sizes by the reduces `members`; empty if it does."""
    if not prod(sizes):
        return f"'{members[0].name}' reduces nothing"
    ordered = next((i for i in members if not (in_any_order(i) or in_order and along_columns(i))), None)
    return "" if ordered is None else f"'{ordered.name}' combines elements in their order"


def _results(sizes: tuple[int, ...], reduced: tuple[int, ...]) -> int:
    return prod(n for d, n in enumerate(sizes) if d not in reduced)


def _find_heroes(root: Instruction, heroes: dict[Instruction, None]) -> None:
    """The reduces at a root, or below what may stand between a reduce and a root."""
    seen: set[Instruction] = set()
    stack = [root]
    while stack:
        i = stack.pop()
        if i in seen:
            continue
        seen.add(i)
        if i.opcode == "reduce":
            heroes[i] = None
        elif is_pointwise(i) or i.opcode in MOVES or i.opcode == "tuple":
            stack.extend(reversed(i.operands))


def _above(order: Sequence[Instruction], heroes: Sequence[Instruction]) -> set[Instruction]:
    """The heroes and all instructions computed from them; `order` has operands first."""
    found = set(heroes)
    for i in order:
        if any(o in found for o in i.operands):
            found.add(i)
    return found


def _places(order: Sequence[Instruction], heroes: Sequence[Instruction]) -> Places:
    """At which index each instruction made from the results stands for their element at (d0, d1, ...).

    Without those that stand for several elements, or for none.
    """
    sizes = memory_sizes(heroes[0].operands[0].shape.with_default_layout())
    kept = [n for d, n in enumerate(sizes) if d not in heroes[0].dimensions]
    ranges = simplifier(tuple((0, n - 1) for n in kept))
    found: Places = {}
    known = set(heroes)
    for i in order:
        if i in known:
            found[i] = dims(len(kept))
            continue
        below = [o for o in i.operands if o in known]
        if not below:
            continue
        known.add(i)
        if any(o not in found for o in below):
            continue
        if i.opcode in MOVES and (i.opcode != "bitcast" or moves_elements(i)):
            found[i] = tuple(ranges.simplify(e) for e in _moved(i, found[below[0]]))
        elif is_pointwise(i) and len({found[o] for o in below}) == 1:
            if all(o.shape.dims == i.shape.dims for o in below):
                found[i] = found[below[0]]
    return found


def _moved(i: Instruction, index: Index) -> Index:
    """The index of the result's element that is the operand's at `index`."""
    operand = i.operands[0].shape
    if i.opcode == "transpose":
        return tuple(index[d] for d in i.dimensions)
    if i.opcode == "reshape":
        return delinearize(linearize(index, operand.dims), i.shape.dims)
    if i.opcode == "bitcast":
        address = linearize(to_memory(operand, index), memory_sizes(operand))
        return from_memory(i.shape, delinearize(address, memory_sizes(i.shape)))
    return index


# -- the order of the walk ---------------------------------------------------------------------------------------------


def along_memory(reduction: Reduction, sources: Sequence[Instruction], partition: Partition) -> Reduction:
    """The reduction walked in the order its largest array lies in memory."""
    sizes = reduction.sizes
    best: tuple[int, list[int]] | None = None
    for read in walk(sources, dims(len(sizes)), sizes, partition):
        found = None if read.address is None else steps(read.address, len(sizes))
        if found is None or any(step <= 0 for step, n in zip(found, sizes, strict=True) if n > 1):
            continue
        if best is None or read.instruction.shape.byte_size > best[0]:
            best = read.instruction.shape.byte_size, found
    if best is None:
        return reduction
    step = best[1]
    # dimensions of size 1 stay behind their neighbours
    order = sorted(range(len(sizes)), key=lambda d: -step[d] if sizes[d] > 1 else -_outer_step(step, sizes, d))
    return reduction.walked(order)


def _outer_step(step: Sequence[int], sizes: Sequence[int], d: int) -> int:
    return next((step[k] for k in range(d - 1, -1, -1) if sizes[k] > 1), prod(sizes))


def runs_of(
    reduction: Reduction, sources: Sequence[Instruction], outputs: Sequence[Shape], partition: Partition
) -> list[list[int]]:
    """Neighbouring dimensions of the walk that all arrays, and the side `outputs`, step through as one."""
    index = reduction.source(dims(len(reduction.sizes)))
    stores = [linearize(to_memory(s, index), memory_sizes(s)) for s in outputs]
    return joined_runs(walk(sources, index, reduction.sizes, partition), reduction.sizes, stores)


def steps_along(
    reduction: Reduction, sources: Sequence[Instruction], partition: Partition, dimensions: Sequence[int]
) -> bool:
    """Whether arrays with elements of their own along the last of `dimensions` step through all of these as one."""
    sizes = reduction.sizes
    index = reduction.source(dims(len(sizes)))
    for read in walk(sources, index, sizes, partition):
        found = None if read.address is None else steps(read.address, len(sizes))
        if found is None:
            return False
        walked = [d for d in dimensions if sizes[d] != 1]
        if found[walked[-1]] and any(found[a] != found[b] * sizes[b] for a, b in pairwise(walked)):
            return False
    return True
