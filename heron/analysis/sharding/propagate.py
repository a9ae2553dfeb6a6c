"""Propagation: the sharding of every value from those that the user gave, to a fixed point.

Levels of op priority accumulate, each runs to its fixed point:

1. ops that move no data, edges of the data flow, constraints; where no operand has another use
2. the same with several uses; dynamic slices and updates forward
3. all ops along pass-through factors, broadcasts backward only
4. all ops along all factors, broadcasts backward only
5. everything

The user's priorities come outside of these: a dimension of a later priority stays unsplit until its turn. Nothing is
decided by the order of a set, so the same program gets the same shardings.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from types import MappingProxyType

from heron.analysis.sharding.edges import Direction, Flow, Link, Tie, flow_of
from heron.analysis.sharding.program import ProgramShardings
from heron.analysis.sharding.rule import OpRule
from heron.analysis.sharding.step import Step
from heron.hlo.facts import has_start_operands
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Op, Trait
from heron.hlo.sharding.atoms import AtomicMesh, Axes, TensorSharding
from heron.records import dataclass

#: directions along pass-through factors and along the others
_Directions = tuple[Direction, Direction]
LEVELS = 5


@dataclass(slots=True)
class Change:
    """A slot's new sharding: by which link, at which level of op priority and which priority of the user."""

    slot: int
    link: int
    level: int
    priority: int
    old: TensorSharding
    new: TensorSharding


@dataclass(slots=True)
class Propagated:
    """The outcome: the sharding of each slot, and how it came about.

    Attributes:
        flow: the slots and links of the program.
        mesh: the atoms.
        final: the closed sharding of each slot.
        changes: every change, in order.
        before_closing: the shardings at the fixed point, with open dimensions.
        constrained: slots whose first sharding a constraint on the value gave → the constraint.
    """

    flow: Flow
    mesh: AtomicMesh
    final: list[TensorSharding]
    before_closing: list[TensorSharding]
    changes: list[Change] = field(default_factory=list)
    constrained: dict[int, str] = field(default_factory=dict)


def propagate(
    module: Module,
    shardings: ProgramShardings,
    parameters: Iterable[bool] = (),
    results: Iterable[bool] = (),
    constrained: Mapping[Instruction, str] = MappingProxyType({}),
) -> Propagated:
    """Find a sharding for every value of a module, and write it into `shardings`, closed.

    The result may have another sharding than the root's value: `Propagated.final` of `Flow.results`.

    Args:
        module: a program whose shardings `sharding-importer` has read, with no ordinary calls left.
        shardings: what the user gave.
        parameters: for each array leaf of the parameters whether propagation may choose its sharding where none is
            given; one entry stands for all, none for True.
        results: the same for the program's results.
        constrained: values whose sharding is that of a constraint on them → the constraint's name.

    Raises HLO027 when a group's members do not fit together.
    """
    flow = flow_of(module, shardings)
    _hold(module, flow, tuple(parameters), tuple(results))
    run = _Run(flow, shardings.mesh)
    run.all()
    closed = [s.close() for s in run.shardings]
    by_constraint = {flow.slot(x): name for x, name in constrained.items() if x in flow.leaves}
    found, final = run.current(), [closed[n] for n in run.state]
    for slot in (s for slots in _interface(module, flow) for s in slots):
        final[slot] = _even(flow.shapes[slot].dims, found[slot], final[slot], slot in by_constraint, shardings.mesh)
    done = Propagated(flow, shardings.mesh, final, found, run.changes, by_constraint)
    for i, slots in flow.leaves.items():
        _set(shardings, i, slots, final)
    for i in dict.fromkeys(link.at for link in flow.links if link.tie is Tie.EDGE):
        _set_tuples(i, flow, shardings, final)
    if Trait.TUPLE in module.entry.root.op.traits:
        _set(shardings, module.entry.root, flow.results, final)
    return done


def _set(shardings: ProgramShardings, i: Instruction, slots: Iterable[int], final: list[TensorSharding]) -> None:
    for slot, (index, _) in zip(slots, i.shape.leaves(), strict=True):
        if slot >= 0:
            shardings.set(i, index, final[slot])


def _set_tuples(i: Instruction, flow: Flow, shardings: ProgramShardings, final: list[TensorSharding]) -> None:
    """Give the tuples that a loop or conditional takes the shardings of what it gives."""
    for source in [*i.operands[:1], *(c.root for c in i.called)]:
        if source.opcode == "tuple" and source.shape.bare is i.shape.bare and len(source.users) < 2:
            _set(shardings, source, flow.leaves[i], final)


# -- the interface of the program ------------------------------------------------------------------------------------
def _interface(module: Module, flow: Flow) -> tuple[list[int], list[int]]:
    """The slots of the array leaves of the program's parameters and of its results."""
    parameters = [s for p in module.entry.parameters for s in flow.leaves[p]]
    return [s for s in parameters if s >= 0], [s for s in flow.results if s >= 0]


def _hold(module: Module, flow: Flow, parameters: tuple[bool, ...], results: tuple[bool, ...]) -> None:
    """Keep whole what has no sharding and may not be given one."""
    for slots, allowed in zip(_interface(module, flow), (parameters, results), strict=True):
        for n, slot in enumerate(slots):
            may = not allowed or allowed[0 if len(allowed) == 1 else n]
            s = flow.initial[slot]
            if not may and s.is_whole and all(s.is_open):
                flow.initial[slot] = s.close()


def _even(
    dims: Sequence[int], found: TensorSharding, closed: TensorSharding, chosen: bool, mesh: AtomicMesh
) -> TensorSharding:
    """The closed sharding of a parameter or result, cut back to whole axes that divide where the user did not fix it.

    With `chosen`, its axes come from a constraint on the value: nobody said how the parameter itself arrives.
    """
    cut = [
        _dividing(mesh, axes, size) if chosen or is_open else axes
        for axes, size, is_open in zip(found.dims, dims, found.is_open, strict=True)
    ]
    return replace(closed, dims=tuple(cut))


def _dividing(mesh: AtomicMesh, axes: Axes, size: int) -> Axes:
    """The longest beginning of `axes` that consists of whole axes and divides `size`."""
    count = 0
    for axis in mesh.merged(axes):
        atoms = mesh.atoms(axis)
        if axis.size is not None or size % mesh.size(axes[: count + len(atoms)]):
            break
        count += len(atoms)
    return axes[:count]


# -- the run ---------------------------------------------------------------------------------------------------------
class _Run:
    """Propagation in progress.

    Shardings are numbered, so that a step is looked up by the numbers of its arrays' shardings: programs repeat
    themselves, and a step is computed once for all links that have one rule.
    """

    def __init__(self, flow: Flow, mesh: AtomicMesh) -> None:
        self.flow, self.mesh = flow, mesh
        self.changes: list[Change] = []
        self.priority = 0
        self.shardings: list[TensorSharding] = []
        self.numbers: dict[TensorSharding, int] = {}
        numbers = {id(s): self.number(_at_first(s)) for s in {id(s): s for s in flow.initial}.values()}
        self.state = [numbers[id(s)] for s in flow.initial]
        self.steps: list[Step] = []
        links = flow.links
        known: dict[tuple[OpRule, Tie], int] = {}
        self.step_of = [self._step(link, known) for link in links]
        self.schedule = [_schedule(link) for link in links]
        self.inner = [n for n, link in enumerate(links) if link.tie is not Tie.RESULT]
        self.outer = [n for n, link in enumerate(links) if link.tie is Tie.RESULT]
        #: for each level the links that pass on more than at the level before
        self.wider = [
            [n for n in self.inner if level and self.schedule[n][level] != self.schedule[n][level - 1]]
            for level in range(LEVELS)
        ]
        self.told = _listeners(flow)
        self.stack: list[int] = []
        self.queued, self.dirty = bytearray(len(links)), bytearray(len(links))
        self.memo: dict[tuple[int, ...], tuple[tuple[int, int], ...]] = {}

    def number(self, s: TensorSharding) -> int:
        found = self.numbers.get(s)
        if found is None:
            found = self.numbers[s] = len(self.shardings)
            self.shardings.append(s)
        return found

    def current(self) -> list[TensorSharding]:
        return [self.shardings[n] for n in self.state]

    def _step(self, link: Link, known: dict[tuple[OpRule, Tie], int]) -> int:
        key = link.rule, link.tie
        found = known.get(key)
        if found is None:
            found = known[key] = len(self.steps)
            self.steps.append(Step(link.rule, self.mesh, link.tie is Tie.ELEMENTWISE, link.tie is Tie.BORDER))
        return found

    def all(self) -> None:
        """All priorities of the user, and all levels in each."""
        later = sorted({p for s in self.flow.initial for p in s.priority if p > 0})
        for priority in (0, *later):
            self.priority = priority
            if priority:
                self._admit(priority)
            for level in range(LEVELS):
                self._level(level)

    def _admit(self, priority: int) -> None:
        """Split the dimensions whose turn it is."""
        for slot, initial in enumerate(self.flow.initial):
            if priority in initial.priority:
                now = self.shardings[self.state[slot]]
                self.state[slot] = self.number(_from_turn(now, initial, priority))

    def _level(self, level: int) -> None:
        """Run one level to its fixed point; the links in the order of the program, then those that changes reach.

        Links that pass on no more than at the level before, and whose shardings have not changed since, have nothing
        to do.
        """
        for n in range(len(self.dirty)) if not level else self.wider[level]:
            self.dirty[n] = 1
        for n in self.outer:
            self._visit(n, level)
        stack = self.stack = self.inner[::-1]
        queued, dirty = self.queued, self.dirty
        for n in stack:
            queued[n] = 1
        while stack:
            n = stack.pop()
            queued[n] = 0
            if dirty[n]:
                dirty[n] = 0
                self._visit(n, level)
        for n in self.outer:
            self._visit(n, level)

    def _visit(self, n: int, level: int) -> None:
        slots = self.flow.links[n].slots
        state = self.state
        key = (self.step_of[n], self.schedule[n][level], *[state[s] for s in slots])
        changed = self.memo.get(key)
        if changed is None:
            changed = self.memo[key] = self._compute(*key)
        for array, new in changed:
            slot = slots[array]
            old = state[slot]
            if old == new:
                continue
            self.dirty[n] = 1  # at the next level
            if old != key[2 + array]:  # the value is there twice, and has changed as the other array
                self._push((n,))
                continue
            state[slot] = new
            self.changes.append(Change(slot, n, level, self.priority, self.shardings[old], self.shardings[new]))
            self._push([m for m in self.told[slot] if m != n])

    def _push(self, links: Iterable[int]) -> None:
        """Put links on the stack that are not there, to be looked at again."""
        for m in links:
            self.dirty[m] = 1
            if not self.queued[m]:
                self.queued[m] = 1
                self.stack.append(m)

    def _compute(self, step: int, directions: int, *numbers: int) -> tuple[tuple[int, int], ...]:
        """The numbers of arrays that change, each with the number of its new sharding."""
        given = [self.shardings[n] for n in numbers]
        found = self.steps[step].run(given, Direction(directions >> 2), Direction(directions & 3))
        return tuple((n, self.number(new)) for n, (old, new) in enumerate(zip(given, found, strict=True)) if new != old)


def _listeners(flow: Flow) -> list[list[int]]:
    """For each slot the links that look at it, in the order in which they are stacked: the first user is last."""
    makers: list[list[int]] = [[] for _ in flow.shapes]
    users: list[list[int]] = [[] for _ in flow.shapes]
    for n, link in enumerate(flow.links):
        if link.tie is Tie.RESULT:
            continue
        operands = len(link.rule.operands)
        for k, slot in enumerate(link.slots):
            found = (users if k < operands else makers)[slot]
            if not found or found[-1] != n:
                found.append(n)
    return [made + used[::-1] for made, used in zip(makers, users, strict=True)]


# -- priorities ------------------------------------------------------------------------------------------------------
def _schedule(link: Link) -> tuple[int, ...]:
    """The directions of a link at each level, as 4 x those along pass-through factors + those along the others."""
    if link.allowed is not Direction.BOTH or link.tie is Tie.RESULT or link.tie is Tie.BORDER:
        return (5 * link.allowed,) * LEVELS
    return _levels(link.at.op, link.is_pass_through, link.has_single_uses)


@lru_cache(1024)
def _levels(op: Op, is_pass_through: bool, has_single_uses: bool) -> tuple[int, ...]:
    both, none, forward, backward = Direction.BOTH, Direction.NONE, Direction.FORWARD, Direction.BACKWARD
    alone = many = none
    if is_pass_through:
        alone, many = (both if has_single_uses else none), both
    elif has_start_operands(op):
        alone, many = (forward if has_single_uses else none), forward
    wide = backward if op.name == "broadcast" else both
    levels: tuple[_Directions, ...] = (
        (alone, alone),
        (many, many),
        (many | wide, many),
        (many | wide, many | wide),
        (both, both),
    )
    return tuple(int(4 * passing + other) for passing, other in levels)


def _at_first(s: TensorSharding) -> TensorSharding:
    """A sharding with the dimensions of later priorities unsplit, closed, and nothing else split along their atoms."""
    if not any(s.priority):
        return replace(s, priority=()) if s.priority else s
    later = [p > 0 for p in s.priority]
    waiting = {a for axes, wait in zip(s.dims, later, strict=True) if wait for a in axes}
    return replace(
        s,
        dims=tuple(() if wait else axes for axes, wait in zip(s.dims, later, strict=True)),
        is_open=tuple(o and not wait for o, wait in zip(s.is_open, later, strict=True)),
        replicated=s.replicated | waiting,
        priority=(),
    )


def _from_turn(now: TensorSharding, initial: TensorSharding, priority: int) -> TensorSharding:
    """A sharding in which the dimensions of `priority` are as the user gave them."""
    turn = [p == priority for p in initial.priority]
    freed = {a for axes, t in zip(initial.dims, turn, strict=True) if t for a in axes} - initial.replicated
    pairs = list(zip(turn, initial.dims, now.dims, strict=True))
    return replace(
        now,
        dims=tuple(given if t else axes for t, given, axes in pairs),
        is_open=tuple(g if t else n for t, g, n in zip(turn, initial.is_open, now.is_open, strict=True)),
        replicated=now.replicated - freed,
    )
