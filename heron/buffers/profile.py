"""Memory over time: what is held at each step of the schedule, and what makes the peak."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from heron.analysis.graph.dataflow import Value
from heron.buffers.assignment import BufferAssignment
from heron.buffers.heap import Interval, merged
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.origin import operation, source_line
from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Held:
    """A buffer that is in use at the peak, by the value in it then: `bytes` from tick `first` to `last`."""

    value: Value
    bytes: int
    first: int
    last: int


class MemoryProfile:
    """The intermediate values of a program over the ticks of its schedule: everything but arguments and constants.

    ``used[t]``: bytes held at tick t. Values that share a buffer count once.
    """

    def __init__(self, assignment: BufferAssignment) -> None:
        self.assignment = assignment
        self.timeline = assignment.sets.liveness.timeline
        self.buffers: list[tuple[Value, int, list[Interval]]] = []
        sets = assignment.sets
        for standing, values in sets.sets().items():
            if any(v.is_given for v in values):
                continue
            size = max(v.size for v in values)
            if size:
                self.buffers.append((standing, size, merged(sets.holds(standing))))

    @cached_property
    def used(self) -> np.ndarray:
        """Bytes in use, by tick."""
        change = np.zeros(self.timeline.length + 4, np.int64)
        for _, size, intervals in self.buffers:
            for first, last in intervals:
                change[max(first, 0)] += size
                change[min(last, self.timeline.length + 2) + 1] -= size
        return np.cumsum(change)[:-1]

    @property
    def peak_tick(self) -> int:
        return int(np.argmax(self.used))

    @property
    def peak(self) -> int:
        return int(self.used[self.peak_tick])

    @property
    def running(self) -> Instruction | None:
        """The instruction that runs at the peak."""
        start, at = self.timeline.start, self.peak_tick
        return next((i for i in reversed(self.timeline.order) if start[i] <= at), None)

    def at_peak(self) -> list[Held]:
        """Buffers in use at the peak, the largest first."""
        tick, found = self.peak_tick, []
        for standing, size, intervals in self.buffers:
            span = next(((a, b) for a, b in intervals if a <= tick <= b), None)
            if span is None:
                continue
            holds = self.assignment.sets.holds(standing)
            value = next((v for a, b, v in reversed(holds) if a <= tick <= b), standing)
            found.append(Held(value, size, *span))
        return sorted(found, key=lambda h: (-h.bytes, h.first))

    @property
    def lost(self) -> int:
        """Bytes of temp that are never in use: what packing could not avoid."""
        return self.assignment.temp_bytes - self.assignment.peak_bytes

    def to_json(self) -> dict[str, Any]:
        """Stable fields: ``lost_bytes``, ``used`` by tick, ``peak`` and the buffers in use then, the largest first."""
        running = self.running
        return {
            "lost_bytes": self.lost,
            "used": self.used.tolist(),
            "peak": {
                "bytes": self.peak,
                "tick": self.peak_tick,
                "running": running.name if running is not None else None,
                "buffers": [
                    {
                        "value": h.value.name,
                        "bytes": h.bytes,
                        "first": h.first,
                        "last": h.last,
                        "shape": str(h.value.shape),
                        "op_name": operation(h.value.instruction),
                        "source": source_line(h.value.instruction),
                    }
                    for h in self.at_peak()
                ],
            },
        }
