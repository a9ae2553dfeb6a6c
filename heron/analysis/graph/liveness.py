"""Liveness: during which ticks of the timeline each value must keep its place in memory."""

from __future__ import annotations

from heron.analysis.graph.dataflow import Dataflow, Value, leaves
from heron.analysis.graph.ordering import Timeline
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction

Interval = tuple[int, int]
Uses = list[tuple[int, Instruction]]


class Liveness:
    """``intervals[v]``: the (first, last) ticks, both included, at which value `v` is held, in order of time.

    Most values have one interval. The state of a while has three: from its start to the last use in condition or body,
    the moment the body's result moves in, and from its end on; the result of a conditional has one for each branch's.
    A value that is last read inside a conditional is held, in each branch, up to the last read there: of branches one
    runs, so what one reads another may overwrite.
    ``uses[v]``: (tick, instruction) of each read; a computation's end is a use by its root.
    """

    def __init__(
        self, flow: Dataflow, timeline: Timeline, donated: frozenset[tuple[int, tuple[int, ...]]] = frozenset()
    ):
        self.flow, self.timeline = flow, timeline
        start = timeline.start
        self.uses: dict[Value, Uses] = {v: [(start[i], i) for i in readers] for v, readers in flow.readers().items()}
        for c, (_, last) in timeline.span.items():
            for value in _handed_out(flow, c):
                self.uses[value].append((last, c.root))
        self.intervals: dict[Value, list[Interval]] = {v: self._held(v, donated) for v in flow.values}

    def _held(self, v: Value, donated: frozenset[tuple[int, tuple[int, ...]]]) -> list[Interval]:
        timeline, uses = self.timeline, self.uses[v]
        final = timeline.length + 1
        if v.kind == "output":
            return [(final, final)]
        if v.kind == "constant":
            return [(-1, final)]
        i = v.instruction
        assert i.parent is not None
        if v.kind == "parameter":
            if (i.attrs["number"], v.index) not in donated:
                return [(-1, final)]
            return self._until_read(-1, -1, uses, i.parent)
        end = timeline.end[i]
        if v.kind != "phi":
            return self._until_read(timeline.start[i], end, uses, i.parent)
        first, *written, _ = self.writes(v)
        tail = self._until_read(end, end, [use for use in uses if use[0] >= end], i.parent)
        if i.opcode != "while":  # read when the conditional has ended
            return [*((t, t) for t in (first, *written)), *tail]
        # held from the start through every condition; after the loop it is the result
        condition_end = timeline.span[i.attrs["condition"]][1]
        inside = [use for use in uses if use[0] < end]
        head = self._until_read(first, condition_end, inside, i.attrs["body"])
        return [*head, *((t, t) for t in written), *tail]

    def writes(self, v: Value) -> tuple[int, ...]:
        """The ticks at which `v` comes into its place; of a phi the last is its instruction's end."""
        timeline, i = self.timeline, v.instruction
        if v.kind == "output":
            return (timeline.length + 1,)
        if v.kind == "parameter" or v.kind == "constant":
            return (-1,)
        if v.kind != "phi":
            return (timeline.start[i],)
        if i.opcode == "while":
            return timeline.start[i] + 1, timeline.span[i.attrs["body"]][1] + 1, timeline.end[i]
        return (*(timeline.span[branch][1] + 1 for branch in i.called), timeline.end[i])

    def readers(self, v: Value, first: int, last: int) -> list[Instruction]:
        """The readers of `v` from tick `first` up to tick `last`; its producer if there are none.

        `first` may be in a branch: those who read the same outside of it, before, count too.
        """
        written = max(t for t in self.writes(v) if t <= first)
        return [i for t, i in self.uses[v] if written <= t <= last] or [v.instruction]

    def _until_read(self, first: int, least: int, uses: Uses, home: Computation) -> list[Interval]:
        """From a tick to the last of `uses`, but not before `least`; with holes where that is in branches that `home`
        runs."""
        last, reader = max(uses, key=_tick, default=(least, None))
        if reader is None or last <= least:
            return [(first, least)]
        while reader is not None and reader.parent is not home:
            assert reader.parent is not None
            reader = self.flow.graph.caller(reader.parent)
        if reader is None or reader.opcode != "conditional":
            return [(first, last)]
        found = [(first, max(least, self.timeline.start[reader]))]
        for branch in reader.called:
            begin, end = self.timeline.span[branch]
            inside = [t for t, _ in uses if begin <= t <= end]
            if inside:
                found.append((begin, max(inside)))
        return found


def _handed_out(flow: Dataflow, c: Computation) -> list[Value]:
    """The values `c` gives to its caller; but not what all branches of a conditional give, which stays in place."""
    found = leaves(flow.at[c.root])
    caller = flow.graph.caller(c)
    if caller is None or caller.opcode != "conditional":
        return [v for _, v in found if v is not None]
    return [v for (_, v), (_, result) in zip(found, leaves(flow.at[caller]), strict=True) if v and v is not result]


def _tick(use: tuple[int, Instruction]) -> int:
    return use[0]
