"""Liveness: during which ticks of the timeline each value must keep its place in memory."""

from __future__ import annotations

from heron.analysis.dataflow import Dataflow, Value, leaves
from heron.analysis.ordering import Timeline
from heron.hlo.instruction import Instruction

Interval = tuple[int, int]


class Liveness:
    """``intervals[v]``: the (first, last) ticks, both included, at which value `v` is held, in order of time.

    Most values have one interval. The state of a while has three: from its start to the last use in condition or body,
    the moment the body's result moves in, and from its end on; the result of a conditional has one for each branch's.
    ``uses[v]``: (tick, instruction) of each read; a computation's end is a use by its root.
    """

    def __init__(
        self, flow: Dataflow, timeline: Timeline, donated: frozenset[tuple[int, tuple[int, ...]]] = frozenset()
    ):
        self.flow, self.timeline = flow, timeline
        start = timeline.start
        self.uses: dict[Value, list[tuple[int, Instruction]]] = {
            v: [(start[i], i) for i in readers] for v, readers in flow.readers().items()
        }
        for c, (_, last) in timeline.span.items():
            for _, value in leaves(flow.at[c.root]):
                if value is not None:
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
        if v.kind == "parameter":
            if (i.attrs["number"], v.index) not in donated:
                return [(-1, final)]
            return [(-1, max((t for t, _ in uses), default=-1))]
        end = timeline.end[i]
        after = max((t for t, _ in uses if t >= end), default=end)
        if v.kind != "phi":
            return [(timeline.start[i], max(after, max((t for t, _ in uses), default=0)))]
        if i.opcode != "while":  # written by each branch, read when the conditional has ended
            written = [timeline.span[branch][1] + 1 for branch in i.called]
            return [*((t, t) for t in written), (end, after)]
        # held from the start through every condition; after the loop it is the result
        condition_end = timeline.span[i.attrs["condition"]][1]
        inside = max((t for t, _ in uses if t < end), default=0)
        written = timeline.span[i.attrs["body"]][1] + 1
        return [(timeline.start[i] + 1, max(condition_end, inside)), (written, written), (end, after)]
