"""The values of computations that run parallel to the rest of the program, and when those may be running.

The timeline lays out what an async-start calls at the start, as if it ran there and then. It may run at any time until
its async-done: a temporary of it must not lie where anything lies that lives at any tick in between.
"""

from __future__ import annotations

from collections.abc import Iterable

from heron.analysis.graph.dataflow import Value
from heron.analysis.graph.liveness import Interval
from heron.analysis.graph.ordering import Timeline
from heron.hlo.facts import continues_async
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction


class Asynchronous:
    """``windows[s]``: the first and the last tick at which what `s`, an async-start, calls may be running."""

    def __init__(self, timeline: Timeline) -> None:
        self.windows: dict[Instruction, Interval] = {}
        self._starts: dict[Computation, Instruction] = {}
        graph = timeline.graph
        for c in graph.sequential():  # callers come before callees
            caller = graph.caller(c)
            if caller is None or caller.parent is None:
                continue
            outer = self._starts.get(caller.parent)
            if outer is not None:
                self._starts[c] = outer
            elif caller.opcode == "async-start":
                self._starts[c] = caller
                self.windows[caller] = timeline.start[caller], _done(caller, timeline)

    def window(self, i: Instruction) -> Interval | None:
        """When `i` may be running, if that is beside the program; None for what is in its order."""
        start = self._starts.get(i.parent) if i.parent is not None else None
        return None if start is None else self.windows[start]

    def starts(self, values: Iterable[Value]) -> set[Instruction]:
        """The async-starts (the outermost) inside which one of `values` is made."""
        if not self._starts:
            return set()
        homes = (v.instruction.parent for v in values)
        return {self._starts[c] for c in homes if c in self._starts}


def _done(start: Instruction, timeline: Timeline) -> int:
    """The tick at which `start` has surely ended: that of its async-done, or else the last there is."""
    at = start
    while True:
        following = next((u for u in at.users if continues_async(u)), None)
        if following is None:
            return timeline.length
        if following.opcode == "async-done":
            return timeline.start[following]
        at = following
