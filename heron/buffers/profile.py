"""Memory over time: what is held at each step of the schedule, what makes the peak, and what would lower it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from heron.analysis.cost.estimate import estimate
from heron.analysis.cost.kernel import kernel_cost
from heron.analysis.dataflow import Value, leaves
from heron.buffers.assignment import BufferAssignment
from heron.buffers.heap import Interval, merged
from heron.hlo.instruction import Instruction
from heron.targets import Target

#: cheap enough to do twice: no library calls, no control flow
_RECOMPUTED = frozenset({"fusion", "copy", "broadcast", "iota", "convert", "reshape", "transpose"})


@dataclass(frozen=True, slots=True)
class Held:
    """A buffer that is in use at the peak, by the value in it then: `bytes` from tick `first` to `last`."""

    value: Value
    bytes: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Recomputation:
    """A value computed again after the peak instead of held across it: `bytes` less, `seconds` more work."""

    value: Value
    bytes: int
    seconds: float


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
            if any(v.kind in ("parameter", "constant") for v in values):
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
        """What runs at the peak."""
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

    def recomputations(self, target: Target, most: int = 5) -> list[Recomputation]:
        """Values held across the peak that cost little to compute again after it from what is there anyhow."""
        found = []
        for held in self.at_peak():
            i = held.value.instruction
            if held.value.kind != "defined" or i.opcode not in _RECOMPUTED or i.shape.is_tuple:
                continue
            uses = sorted(t for t, _ in self.assignment.sets.liveness.uses[held.value])
            before = [t for t in uses if t <= self.peak_tick]
            after = [t for t in uses if t > self.peak_tick]
            if self.peak_tick in before or not after or not self._are_there(i.operands, after[0]):
                continue
            gone = (max([*before, self.timeline.start[i]]) + 1, after[0] - 1)
            less = self.peak - self._peak_without(held.bytes, gone)
            if less > 0:
                time = estimate(kernel_cost(i), target).seconds
                found.append(Recomputation(held.value, less, time))
        return sorted(found, key=lambda s: -s.bytes)[:most]

    def _are_there(self, operands: Sequence[Instruction], tick: int) -> bool:
        """Whether all of them are still held at that tick."""
        flow, intervals = self.assignment.flow, self.assignment.sets.liveness.intervals
        values = [v for o in operands for _, v in leaves(flow.at[o]) if v is not None]
        return all(any(a <= tick <= b for a, b in intervals[v]) for v in values)

    def _peak_without(self, size: int, gone: Interval) -> int:
        used = self.used.copy()
        used[gone[0] : gone[1] + 1] -= size
        return int(used.max())
