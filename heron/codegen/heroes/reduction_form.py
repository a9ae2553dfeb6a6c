"""What a fusion with reduces is made of: the reduces, how their dimensions are walked, what stands around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from heron.analysis.indexing.hlo_maps import Index, delinearize, linearize
from heron.codegen.heroes.base import Entry, Fusion
from heron.codegen.heroes.reducers import Reducer, reducer_of
from heron.hlo.instruction import Instruction

_EPILOGUE = frozenset({"bitcast", "reshape", "get-tuple-element", "copy", "tuple"})


@dataclass(frozen=True, slots=True)
class Reduction:
    """What is reduced and what becomes of it.

    ``sizes``: dimensions of the reduced arrays; ``reduced``: those summed over; ``side``: numbers of the outputs of the
    arrays' shape; ``after``: numbers of the outputs made from the results.
    """

    reducers: tuple[Reducer, ...]
    sizes: tuple[int, ...]
    reduced: tuple[int, ...]
    side: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def kept(self) -> tuple[int, ...]:
        """The dimensions that stay."""
        return tuple(d for d in range(len(self.sizes)) if d not in self.reduced)

    @property
    def kept_sizes(self) -> tuple[int, ...]:
        return tuple(self.sizes[d] for d in self.kept)

    @property
    def rows(self) -> int:
        """How many results there are."""
        return prod(self.kept_sizes)

    @property
    def row(self) -> int:
        """How many elements make one result."""
        return prod(self.sizes[d] for d in self.reduced)

    def start(self, frame: Entry) -> list[SSAValue]:
        """Initial accumulators of all heroes."""
        return [v for r in self.reducers for v in r.start(frame.e)]

    def split(self, values: Sequence[SSAValue]) -> list[Sequence[SSAValue]]:
        """Accumulators of all heroes, hero by hero."""
        out: list[Sequence[SSAValue]] = []
        at = 0
        for r in self.reducers:
            out.append(values[at : at + len(r.types)])
            at += len(r.types)
        return out

    @property
    def accumulators(self) -> int:
        """How many accumulators there are."""
        return sum(len(r.types) for r in self.reducers)

    def element(self, frame: Entry, index: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        """One element of the arrays joined to the accumulators; side outputs, carried after them, stored."""
        e, n = frame.e, self.accumulators
        elements = [[e.value(a, index) for a in r.arrays] for r in self.reducers]
        outputs = [frame.fusion.outputs[k] for k in self.side]
        values = [o.of(e.value(o.instruction, index)) for o in outputs]
        results: list[SSAValue] = []
        for r, accumulators, read in zip(self.reducers, self.split(carried[:n]), elements, strict=True):
            results += r.step(e, accumulators, read)
        stored = [e.insert(v, t, index) for v, t in zip(values, carried[n:], strict=True)]
        return [*results, *stored]

    def epilogue(
        self, frame: Entry, index: Index, accumulators: Sequence[SSAValue], tensors: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """The outputs made from the results at `index` (of the kept dimensions), stored."""
        e = frame.e
        for r, values in zip(self.reducers, self.split(accumulators), strict=True):
            e.provide(r.hero, index, r.finish(e, values))
        linear = linearize(index, self.kept_sizes)
        stored: list[tuple[object, SSAValue, Index]] = []
        for n, tensor in zip(self.after, tensors, strict=True):
            output = frame.fusion.outputs[n]
            dims = output.shape.dims
            at = index if dims == self.kept_sizes else e.simplify(delinearize(linear, dims))
            stored.append((output.of(e.value(output.instruction, at)), tensor, at))
        return [e.insert(value, tensor, at) for value, tensor, at in stored]

    def store(self, frame: Entry, which: Sequence[int], tensors: Sequence[SSAValue]) -> None:
        """`tensors` are what those outputs now are."""
        for n, tensor in zip(which, tensors, strict=True):
            frame.outputs[n] = tensor


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


def analyse(fusion: Fusion) -> Reduction | None:
    """The reduction a fusion is, or None when it is of no form this emitter knows."""
    heroes: list[Instruction] = []
    for output in fusion.outputs:
        _find_heroes(output.instruction, heroes)
    if not heroes:
        return None
    first = heroes[0]
    sizes, reduced = first.operands[0].shape.dims, tuple(sorted(first.dimensions))
    for h in heroes:
        arrays = h.operands[: len(h.operands) // 2]
        if any(a.shape.dims != sizes for a in arrays) or tuple(sorted(h.dimensions)) != reduced:
            return None
    reducers = tuple(reducer_of(h) for h in heroes)
    side: list[int] = []
    after: list[int] = []
    results = prod(n for d, n in enumerate(sizes) if d not in reduced)
    for n, output in enumerate(fusion.outputs):
        if output.shape.dims == sizes and not _reaches(output.instruction, heroes):
            side.append(n)
        elif output.shape.num_elements == results and _in_place(output.instruction, heroes):
            after.append(n)
        else:
            return None
    found = Reduction(reducers, sizes, reduced, tuple(side), tuple(after))
    return found if found.rows and found.row else None


def _find_heroes(i: Instruction, heroes: list[Instruction]) -> None:
    seen: set[Instruction] = set()
    stack = [i]
    while stack:
        i = stack.pop()
        if i in seen:
            continue
        seen.add(i)
        if i.opcode == "reduce":
            if i not in heroes:
                heroes.append(i)
        elif i.op.is_elementwise or i.opcode in _EPILOGUE:
            stack.extend(reversed(i.operands))


def _reaches(i: Instruction, heroes: Sequence[Instruction]) -> bool:
    """Whether `i` is computed from a hero."""
    seen: set[Instruction] = set()
    stack = [i]
    while stack:
        i = stack.pop()
        if i in heroes:
            return True
        if i not in seen:
            seen.add(i)
            stack.extend(i.operands)
    return False


def _in_place(i: Instruction, heroes: Sequence[Instruction]) -> bool:
    """Whether `i` reads heroes only through ops that keep each element at its row-major position."""
    seen: set[Instruction] = set()
    stack = [i]
    while stack:
        i = stack.pop()
        if i in heroes or i in seen:
            continue
        seen.add(i)
        if i.op.is_elementwise or i.opcode in _EPILOGUE:
            stack.extend(i.operands)
        elif _reaches(i, heroes):
            return False
    return True
