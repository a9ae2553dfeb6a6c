"""Kernels with several outputs that hold more at the peak than their parts, one after the other, would."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator, Sequence, Set
from dataclasses import field

from heron.analysis.fusion.iteration_space import joinable_outputs
from heron.analysis.graph.dataflow import Dataflow, Value
from heron.analysis.graph.donation import output_aliases
from heron.hlo.facts import is_expensive, is_given, is_indirect, is_over_operand, is_tuple_op, root_parts
from heron.hlo.ir.instruction import Instruction
from heron.passes.schedule.model.peaks import course
from heron.passes.schedule.model.steps import Places, Steps
from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Candidate:
    """``late``: outputs of a fusion that a kernel of their own could compute later, ``gain`` bytes less at the peak."""

    fusion: Instruction
    late: frozenset[int]
    gain: int


@dataclass(slots=True)
class _Outputs:
    """The outputs of a fusion, by number: their bytes, the places of the first and the last step that read them, and
    what computes them inside."""

    fusion: Instruction
    sizes: list[int]
    begins: list[int]
    ends: list[int]
    roots: Sequence[Instruction] = field(init=False)

    def __post_init__(self) -> None:
        self.roots = root_parts(self.fusion.attrs["calls"])

    def given_to(self, late: Collection[int]) -> tuple[set[int], set[int]] | None:
        """Operands and other outputs, by number, that a kernel of these outputs reads. None where it would compute
        again what takes long."""
        count = range(len(self.roots))
        first = self._computed([self.roots[n] for n in count if n not in late], {})
        stops = {self.roots[n]: n for n in count if n not in late}
        second = self._computed([self.roots[n] for n in late], stops)
        if any(_takes_long(i) for i in second.keys() & first.keys() if i not in stops):
            return None
        operands = {i.attrs["number"] for i in second if i.opcode == "parameter"}
        return operands, {stops[i] for i in second if i in stops}

    def _computed(self, roots: Sequence[Instruction], stops: Container[Instruction]) -> dict[Instruction, None]:
        """Instructions that these need, themselves too, and none that only ``stops`` need."""
        seen: dict[Instruction, None] = {}
        stack = list(roots)
        while stack:
            i = stack.pop()
            if i not in seen:
                seen[i] = None
                if i not in stops:
                    stack += i.operands
        return seen


def _takes_long(i: Instruction) -> bool:
    return is_expensive(i) or is_indirect(i) or is_over_operand(i)


def candidates(steps: Steps, order: Sequence[int], at: int, hazards: Set[Value]) -> Iterator[Candidate]:
    """Splits of fusions that hold outputs at the peak, which is while step `at` of `order` runs; none of fusions that
    read or write ``hazards``."""
    search = _Search(steps, order, at, hazards)
    for k in range(at + 1):
        i = steps.instructions[order[k]]
        if i.opcode == "fusion" and i.shape.is_tuple:
            outputs = search.outputs(i)
            if outputs is not None:
                yield from search.apart(outputs) if k == at else search.behind(outputs, order[k])


class _Search:
    """The search of one order. ``first`` and ``last`` are the places of the steps that read a value first and last:
    behind all others where none does."""

    def __init__(self, steps: Steps, order: Sequence[int], at: int, hazards: Set[Value]) -> None:
        self.steps, self.order, self.at, self.hazards = steps, order, at, hazards
        self.course = course(steps, order)
        self.first = [len(order)] * len(steps.readers)
        self.last = self.first.copy()
        place = {n: k for k, n in enumerate(order)}
        for k in reversed(range(len(order))):
            for v in steps.reads[order[k]]:
                self.first[v] = k
        for v, n in enumerate(self.course.last):
            self.last[v] = place.get(n, len(order))

    def outputs(self, i: Instruction) -> _Outputs | None:
        """The outputs of a fusion; None where none is held at the peak, or it must stay whole."""
        steps = self.steps
        assert steps.flow is not None
        tree = steps.flow.at[i]
        values = [v for v in tree if isinstance(v, Value) and v in steps.numbers] if isinstance(tree, tuple) else []
        if len(values) < 2 or len(values) < len(i.shape.tuple_shapes or ()):
            return None
        numbers = [steps.numbers[v] for v in values]
        if all(self.last[v] < self.at for v in numbers) or not self._is_divisible(i, values):
            return None
        begins, ends = [self.first[v] for v in numbers], [self.last[v] for v in numbers]
        return _Outputs(i, [v.device_size for v in values], begins, ends)

    def _is_divisible(self, i: Instruction, values: Sequence[Value]) -> bool:
        if "backend_config" in i.extras or not joinable_outputs(i) or not all(is_tuple_op(u) for u in i.users):
            return False
        parts = root_parts(i.attrs["calls"])
        if len(set(parts)) < len(values) or any(is_given(r) for r in parts):  # fewer where one op gives several
            return False
        assert self.steps.flow is not None
        given = [self.steps.flow.at[o] for o in i.operands]
        if any(not isinstance(v, Value) or v.kind == "phi" or v in self.hazards for v in given):
            return False
        return self.hazards.isdisjoint(values)

    def _read(self, outputs: _Outputs, late: frozenset[int]) -> tuple[set[int], set[int]] | None:
        """The values that a kernel of the late outputs reads, and which of the other outputs."""
        given = outputs.given_to(late)
        if given is None:
            return None
        flow, numbers = self.steps.flow, self.steps.numbers
        assert flow is not None
        values = [flow.at[outputs.fusion.operands[n]] for n in given[0]]
        return {numbers[v] for v in values if isinstance(v, Value) and v in numbers}, given[1]

    def apart(self, outputs: _Outputs) -> Iterator[Candidate]:
        """Splits of the kernel that runs at the peak: a second one for outputs first read later, or for one of them."""
        steps, n = self.steps, self.order[self.at]
        shared = {v: size for v, size in steps.shared(n).items() if self.course.last[v] == n}
        count = range(len(outputs.roots))
        tried = [frozenset(k for k in count if outputs.begins[k] >= b) for b in sorted(set(outputs.begins))[1:]]
        for late in dict.fromkeys([*tried, *(frozenset([k]) for k in count)]):
            given = self._read(outputs, late)
            if given is None:
                continue
            read, made = given
            begin = min(outputs.begins[k] for k in late)
            dying = sum(steps.frees[v] for v in steps.reads[n] if self.course.last[v] == n and v not in read)
            gone = sum(outputs.sizes[k] for k in count if k not in late and k not in made and outputs.ends[k] < begin)
            over_later = sum(size for v, size in shared.items() if v in read)
            over_first = sum(shared.values()) - over_later
            later = sum(outputs.sizes[k] for k in late)
            # what is computed over operands now counts in one of the two kernels
            yield Candidate(outputs.fusion, late, min(later - over_later, dying + gone - over_first))

    def behind(self, outputs: _Outputs, n: int) -> Iterator[Candidate]:
        """Splits of a kernel `n` whose outputs wait at the peak: those first read behind it are computed there."""
        held, shared = self.course.held, self.steps.shared(n)
        count = range(len(outputs.roots))
        for border in sorted({b for b in outputs.begins if self.at < b < len(held)}):
            late = frozenset(k for k in count if outputs.begins[k] >= border)
            given = self._read(outputs, late) if len(late) < len(outputs.roots) else None
            if given is None:
                continue
            read, made = given
            waits = [(self.last[v], self.steps.frees[v], v in shared) for v in read]
            waits += [(outputs.ends[k], outputs.sizes[k], False) for k in made]
            here = sum(outputs.sizes[k] for k in late) - sum(size for end, size, _ in waits if end < self.at)
            # until the second kernel has run, which is ahead of what reads it
            waiting = sum(size for end, size, is_over in waits if end < border and not is_over)
            there = held[self.at] - held[border] - max(0, waiting - self.steps.makes[self.order[border]])
            yield Candidate(outputs.fusion, late, min(here, there))


def hazards_of(flow: Dataflow, places: Places) -> set[Value]:
    """Values in buffers that others write later, or wrote before, where what reads them says nothing of that order."""
    found = set(places.given) | places.moved
    parameters = {p.attrs["number"]: p for p in flow.module.entry.parameters}
    found.update(flow.value(parameters[n], index) for _, n, index in output_aliases(flow.module) if n in parameters)
    for f in flow.flows:
        if f.kind in ("in-place", "while-body"):
            found.update((f.source, f.target))
    return found
