"""The reasons for shardings: from which neighbour each axis came, by which rule, at which priority; what was refused.

Propagation records its changes alone. Everything else follows from them and is worked out when it is asked for.

    reasons = Reasons(propagate(module, shardings))
    for step in reasons.chain(i):      # 'x' of dimension 0 from %dot.1, which has it from %a, where it was given
        print(step)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

from heron.analysis.sharding.edges import Link, Tie
from heron.analysis.sharding.propagate import Change, Propagated
from heron.analysis.sharding.rule import OpRule
from heron.analysis.sharding.step import Refusal
from heron.analysis.sharding.step import Step as RuleStep
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import ShapeIndex
from heron.hlo.sharding.atoms import Axes, TensorSharding
from heron.records import dataclass

#: the levels of op priority in words
LEVEL_NAMES = (
    "level 1, ops that move no data",
    "level 2, ops that move no data with several uses",
    "level 3, along pass-through factors",
    "level 4, along all factors",
    "level 5, broadcasts forward",
)


@dataclass(frozen=True, slots=True)
class Step:
    """Axes that one dimension of a value got.

    Attributes:
        value: the value's name, ``while.1{2}`` for part of a tuple.
        dim: the dimension.
        axes: the axes as text, ``'x', 'y':(1)2``.
        source: the neighbour that had them before; "" where they were given.
        by: the instruction that ties the two together: ``dot.1``; of given axes the constraint, if any.
        tie: the kind of tie in words, of an op its opcode; of given axes the pass that gave them, if any.
        rule: the sharding rule's text.
        level: the level of op priority, from 1; 0 where the axes were given.
        priority: the user's priority.
    """

    value: str
    dim: int
    axes: str
    source: str = ""
    by: str = ""
    tie: str = ""
    rule: str = ""
    level: int = 0
    priority: int = 0

    def __str__(self) -> str:
        if not self.level:
            given = f"given by the constraint %{self.by}" if self.by else "given"
            return f"%{self.value} dimension {self.dim}: {self.axes} {given}"
        turn = f", priority {self.priority} of the user" if self.priority else ""
        text = f"%{self.value} dimension {self.dim}: {self.axes} from %{self.source} by the {self.tie} %{self.by}"
        return f"{text} ({LEVEL_NAMES[self.level - 1]}{turn})"


@dataclass(frozen=True, slots=True)
class Refused:
    """Axes that a neighbour has and that a dimension of a value did not get, and why."""

    value: str
    dim: int
    axes: str
    by: str
    reason: str

    def __str__(self) -> str:
        return f"%{self.value} dimension {self.dim}: {self.axes} refused at %{self.by}: {self.reason}"


@dataclass(frozen=True, slots=True)
class _Arrival:
    """An atom's arrival in a dimension: the change's number, -1 where it was given."""

    change: int
    dim: int


class Reasons:
    """Answers about the shardings that propagation found."""

    def __init__(self, done: Propagated) -> None:
        self.done = done
        self.flow, self.mesh = done.flow, done.mesh
        self._arrived: dict[int, dict[int, _Arrival]] = {}
        self._known: dict[tuple[OpRule, Tie, tuple[int, ...]], list[Refusal]] = {}

    def name(self, slot: int) -> str:
        """The name of a slot's value: its instruction, with the tuple index where it is part of a tuple."""
        return _name(*self.flow.names[slot])

    def steps(self, i: Instruction, index: ShapeIndex = ()) -> list[Step]:
        """The steps that brought each axis to a value, dimension by dimension."""
        slot = self.flow.slot(i, index)
        return [] if slot < 0 else [replace(s, value=_name(i, index)) for s, _ in self._steps(slot, None)]

    def chain(self, i: Instruction, index: ShapeIndex = ()) -> list[Step]:
        """The steps of a value, each followed by those of the neighbour it came from, back to what was given."""
        slot = self.flow.slot(i, index)
        found: dict[Step, None] = {}
        waiting = [] if slot < 0 else self._steps(slot, None)[::-1]
        while waiting:
            step, source = waiting.pop()
            if step in found:
                continue
            found[step] = None
            if source is not None:
                waiting += self._steps(*source)[::-1]
        return list(found)

    def refusals(self, i: Instruction, index: ShapeIndex = ()) -> list[Refused]:
        """The axes of neighbours that a value could not take at the end."""
        slot = self.flow.slot(i, index)
        found: dict[Refused, None] = {}
        for link in self._links.get(slot, ()):
            for refusal in self._refusals(link):
                if link.slots[refusal.array] == slot:
                    axes = self.mesh.text(refusal.axes)
                    found[Refused(_name(i, index), refusal.dim, axes, link.at.name, refusal.reason)] = None
        return list(found)

    # -- arrivals ----------------------------------------------------------------------------------------------------
    @cached_property
    def _changes(self) -> dict[int, list[int]]:
        """The numbers of the changes of each slot that had any."""
        found: dict[int, list[int]] = {}
        for n, change in enumerate(self.done.changes):
            found.setdefault(change.slot, []).append(n)
        return found

    def _arrivals(self, slot: int) -> dict[int, _Arrival]:
        """The arrival of each atom in a slot. Atoms that were not given arrive by a change."""
        found = self._arrived.get(slot)
        if found is None:
            given = enumerate(self.flow.initial[slot].dims)
            found = self._arrived[slot] = {a: _Arrival(-1, d) for d, axes in given for a in axes}
            for n in self._changes.get(slot, ()):
                change = self.done.changes[n]
                for d, (old, new) in enumerate(zip(change.old.dims, change.new.dims, strict=True)):
                    for atom in new[len(old) :]:
                        found.setdefault(atom, _Arrival(n, d))
        return found

    @cached_property
    def _links(self) -> dict[int, list[Link]]:
        found: dict[int, list[Link]] = {}
        for link in self.flow.links:
            for slot in dict.fromkeys(link.slots):
                found.setdefault(slot, []).append(link)
        return found

    def _steps(self, slot: int, only: frozenset[int] | None) -> list[tuple[Step, tuple[int, frozenset[int]] | None]]:
        """The steps that brought atoms (`only` these) to a slot, each with the slot and atoms it goes on with."""
        found: list[tuple[Step, tuple[int, frozenset[int]] | None]] = []
        name = self.name(slot)
        for d, axes in enumerate(self.done.final[slot].dims):
            for atoms, source, change in self._runs(slot, d, axes, only):
                text = self.mesh.text(atoms)
                if change is None:
                    found.append((Step(name, d, text, by=self.done.constrained.get(slot, "")), None))
                    continue
                link = self.flow.links[change.link]
                step = Step(
                    name, d, text, self.name(source), link.at.name, _words(link), str(link.rule),
                    change.level + 1, change.priority,
                )  # fmt: skip
                found.append((step, (source, frozenset(atoms)) if source != slot else None))
        return found

    def _runs(
        self, slot: int, d: int, axes: Axes, only: frozenset[int] | None
    ) -> Iterator[tuple[list[int], int, Change | None]]:
        """Neighbouring atoms of a dimension that came from one source by one change."""
        run: list[int] = []
        last: tuple[int, int] | None = None
        for atom in axes:
            if only is not None and atom not in only:
                continue
            arrival = self._arrivals(slot).get(atom)
            n = -1 if arrival is None else arrival.change
            key = n, (slot if n < 0 else self._source(self.done.changes[n], n, d, atom))
            if run and key != last and last is not None:
                yield run, last[1], self.done.changes[last[0]] if last[0] >= 0 else None
                run = []
            last = key
            run.append(atom)
        if run and last is not None:
            yield run, last[1], self.done.changes[last[0]] if last[0] >= 0 else None

    def _source(self, change: Change, n: int, d: int, atom: int) -> int:
        """The slot that had an atom ahead of change `n` along the same factor; the earliest one."""
        link = self.flow.links[change.link]
        arrays = link.rule.arrays
        mine = {f for k, s in enumerate(link.slots) if s == change.slot for f in arrays[k][d]}
        best, when = change.slot, n
        for k, slot in enumerate(link.slots):
            arrival = self._arrivals(slot).get(atom)
            if slot == change.slot or arrival is None or arrival.change >= when:
                continue
            if mine & set(arrays[k][arrival.dim]):
                best, when = slot, arrival.change
        return best

    def _refusals(self, link: Link) -> list[Refusal]:
        shardings = tuple(self.done.before_closing[s] for s in link.slots)
        key = link.rule, link.tie, tuple(map(id, shardings))
        found = self._known.get(key)
        if found is None:
            step = RuleStep(link.rule, self.mesh, link.tie is Tie.ELEMENTWISE, link.tie is Tie.BORDER)
            found = self._known[key] = step.refusals(shardings)
        return found


def _name(i: Instruction, index: ShapeIndex) -> str:
    return i.name + ("{" + ",".join(map(str, index)) + "}" if index else "")


def _words(link: Link) -> str:
    """The kind of a link: an op's opcode, a custom call's target."""
    if link.tie is not Tie.OP and link.tie is not Tie.ELEMENTWISE:
        return link.tie.value
    return link.at.custom_call_target if link.at.opcode == "custom-call" else link.at.opcode


def sharding_text(done: Propagated, sharding: TensorSharding) -> str:
    """``[{'x'}, {}]``: the dimensions of a sharding, with what is yet to be summed and what is manual."""
    mesh = done.mesh
    text = "[" + ", ".join("{" + mesh.text(axes) + "}" for axes in sharding.dims) + "]"
    for word in ("unreduced", "manual"):
        atoms = sorted(getattr(sharding, word))
        text += f", {word}={{{mesh.text(atoms)}}}" if atoms else ""
    return text
