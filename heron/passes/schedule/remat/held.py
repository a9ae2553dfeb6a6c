"""Held: which bytes are held at each tick of a schedule, in stays that can be cut in two.

A value is computed once and then stays until its last reader. Computing it again ends the stay early and begins a new
one shortly before the next reader. New instructions have no ticks of their own: they run at the odd tick ahead of the
instruction they are for, one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

import numpy as np

from heron.analysis.graph.alias import AliasSets
from heron.analysis.graph.call_graph import CallGraph
from heron.analysis.graph.dataflow import Dataflow, Tree, Value, leaves
from heron.analysis.graph.donation import donated_parameters, output_aliases
from heron.analysis.graph.liveness import Liveness
from heron.analysis.graph.ordering import Timeline
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Use:
    """`reader` needs a value from tick `first` to `last`. ``is_result``: as part of its computation's result."""

    first: int
    last: int
    reader: Instruction
    is_result: bool = False


@dataclass(eq=False, slots=True)
class Stay:
    """`value`, as computed by `provider`, is held from tick `first` to `last`. ``uses`` are in order of time."""

    value: Value
    provider: Instruction
    first: int
    last: int
    uses: list[Use] = field(default_factory=list)


class Held:
    """The memory of a scheduled module, over the ticks of its timeline.

    ``bytes[t]``: what is held at tick t beside arguments and constants; values that share a buffer count once.
    ``passing[t]``: what new instructions need for a moment at tick t. ``stays``: of each value, in order of time.
    ``weight[v]``: bytes its stay costs. ``room[v]``: before that tick it must be gone, for its buffer gets another
    value then. ``inserted[t]``: new instructions that run at the odd tick t, in order. ``at``: as in `Dataflow`, also
    of new instructions.
    """

    def __init__(self, module: Module) -> None:
        assert module.schedule is not None
        self.module = module
        self.graph = CallGraph(module)
        self.flow = Dataflow(module, self.graph)
        self.timeline = Timeline(module.schedule, self.graph)
        self.at: dict[Instruction, Tree] = self.flow.at
        liveness = Liveness(self.flow, self.timeline, donated_parameters(module))
        sets = AliasSets(liveness)
        in_step = sets.allow_in_step()
        self._join_aliased(sets)
        for f in self.flow.flows:
            sets.join(f.source, f.target)
        self.room = self._rooms(sets)
        for source, target in in_step:
            sets.join(source, target)
        self._starts = {tick: i for i, tick in self.timeline.start.items()}
        ticks = self.timeline.length + 4
        self.weight: dict[Value, int] = {}
        self.bytes = self._bytes(sets, ticks)
        self.passing = np.zeros(ticks, np.int64)
        self.inserted: dict[int, list[Instruction]] = {}
        self.stays: dict[Value, list[Stay]] = {}
        for v, intervals in liveness.intervals.items():
            self.stays[v] = [Stay(v, v.instruction, a, b) for a, b in intervals]
            if v.kind == "defined":
                self.stays[v][0].uses = self._uses(v, liveness)

    # -- questions ---------------------------------------------------------------------------------------------------
    @property
    def used(self) -> np.ndarray:
        """Bytes held or passing, by tick."""
        return self.bytes + self.passing

    @property
    def peak(self) -> int:
        return int(self.used.max())

    def start(self, i: Instruction) -> int:
        return self.timeline.start[i]

    def values(self, i: Instruction) -> list[Value]:
        """The arrays in the result of `i`, whoever defined them."""
        tree = self.at[i]
        if isinstance(tree, Value):
            return [tree]
        return [v for _, v in leaves(tree) if v is not None]

    def place(self, use: Use) -> tuple[int, int]:
        """The place of new instructions that run just before a user: a tick, and a position among those at it."""
        if use.first % 2:
            return use.first, self.inserted[use.first].index(use.reader)
        there = self.inserted.get(use.first - 1)
        return use.first - 1, len(there) if there else 0

    def is_before(self, i: Instruction, tick: int, place: int) -> bool:
        """Whether `i` runs before what would be inserted there."""
        new = self.inserted.get(tick)
        return not new or i not in new or new.index(i) < place

    def stay_at(self, v: Value, tick: int, place: int) -> Stay | None:
        """The stay of `v` from which something inserted there could read."""
        for s in self.stays[v]:
            if s.first <= tick <= s.last and (s.first < tick or self.is_before(s.provider, tick, place)):
                return s
        return None

    def stay_before(self, v: Value, tick: int) -> Stay | None:
        """The stay of `v` that could last until that tick without losing its buffer; None when none could."""
        if tick >= self.room[v]:
            return None
        return max((s for s in self.stays[v] if s.last < tick), key=lambda s: s.last, default=None)

    def writer_over(self, v: Value) -> Instruction | None:
        """The instruction that overwrites the buffer of `v` with another value after its last use."""
        return self._starts.get(self.room[v])

    def gaps(self, s: Stay) -> Iterator[tuple[int, Use]]:
        """The gaps in a live range: (last tick before, next use), with at least one tick between."""
        needed = s.first
        for use in s.uses:
            if use.first - needed > 2 and not use.is_result:
                yield needed, use
            needed = max(needed, use.last)

    def add_use(self, v: Value, use: Use) -> None:
        """A new reader at an odd tick; its stay's readers at one tick stand in the order they run in."""
        there = self.inserted[use.first]
        mine = there.index(use.reader)
        s = self.stay_at(v, use.first, mine)
        assert s is not None, f"{v.name} is gone at tick {use.first}"

        def is_later(u: Use) -> bool:
            return u.is_result or u.first > use.first or (u.first == use.first and there.index(u.reader) > mine)

        s.uses.insert(next((n for n, u in enumerate(s.uses) if is_later(u)), len(s.uses)), use)

    # -- construction ------------------------------------------------------------------------------------------------
    def _join_aliased(self, sets: AliasSets) -> None:
        outputs = {out.index: out for out in self.flow.outputs}
        parameters = {p.attrs["number"]: p for p in self.module.entry.parameters}
        for output, number, index in output_aliases(self.module):
            sets.join(self.flow.value(parameters[number], index), outputs[output])

    def _rooms(self, sets: AliasSets) -> dict[Value, int]:
        rooms: dict[Value, int] = {}
        for standing in sets.sets():
            holds = sets.holds(standing)
            starts = [*(start for start, _, _ in holds[1:]), 1 << 60]
            for (_, _, v), following in zip(holds, starts, strict=True):
                rooms.setdefault(v, following)
        return rooms

    def _bytes(self, sets: AliasSets, ticks: int) -> np.ndarray:
        change = np.zeros(ticks + 1, np.int64)
        for standing, values in sets.sets().items():
            own = any(v.is_given for v in values)
            size = 0 if own else max(v.size for v in values)
            self.weight.update(dict.fromkeys(values, size))
            if not size:
                continue
            end = -1
            for a, b, _ in sets.holds(standing):
                a = max(a, 0, end + 1)
                if b >= a:
                    change[a] += size
                    change[b + 1] -= size
                    end = b
        return np.cumsum(change)[:-1]

    def _uses(self, v: Value, liveness: Liveness) -> list[Use]:
        """The uses of `v` by instructions of its own computation: a loop that reads it inside needs it all along."""
        home = v.instruction.parent
        assert home is not None
        timeline, found = self.timeline, dict[Instruction, Use]()
        end = timeline.span[home][1]
        result: list[Use] = []
        for tick, reader in liveness.uses[v]:
            i = self._in(home, reader)
            if i is None or (i is home.root and tick == end):  # handed out: read by those outside, too
                result = [Use(end, end, home.root, True)]
            else:
                found[i] = Use(timeline.start[i], timeline.end[i], i)
        return sorted(found.values(), key=lambda u: u.first) + result

    def _in(self, home: Computation, reader: Instruction) -> Instruction | None:
        """The instruction of `home` that is, or runs, `reader`; None when it is not in there."""
        at: Instruction | None = reader
        while at is not None and at.parent is not home:
            assert at.parent is not None
            at = self.graph.caller(at.parent)
        return at
