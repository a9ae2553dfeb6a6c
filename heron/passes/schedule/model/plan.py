"""Plan: the orders of all computations of a module, and what they hold."""

from __future__ import annotations

from dataclasses import field
from functools import cached_property

from heron.analysis.graph.dataflow import Dataflow
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.passes.schedule.model.peaks import top_beyond
from heron.passes.schedule.model.steps import Places, Steps
from heron.records import dataclass

#: bytes beyond the memory of outputs that are worth saving some of
LEAST = 4096


@dataclass
class Plan:
    """``peaks``: bytes that each computation holds at most; ``decisions``: its name, the bytes in the plain order and
    in the one taken, and why."""

    flow: Dataflow
    places: Places
    schedule: dict[Computation, list[Instruction]] = field(default_factory=dict)
    steps: dict[Computation, Steps] = field(default_factory=dict)
    orders: dict[Computation, list[int]] = field(default_factory=dict)
    peaks: dict[Computation, int] = field(default_factory=dict)
    decisions: list[tuple[str, int, int, str]] = field(default_factory=list)

    @cached_property
    def top(self) -> tuple[int, int]:
        """The place of the entry's peak in its order, and the bytes that lie beyond the outputs there."""
        entry = self.flow.module.entry
        return top_beyond(self.steps[entry], self.orders[entry]) if self.orders[entry] else (0, 0)

    @property
    def needed(self) -> int:
        """Bytes that are held at most beyond the memory of outputs."""
        return self.top[1]

    @property
    def has_several_outputs(self) -> bool:
        """Whether some kernel has more than one output."""
        return any(i.opcode == "fusion" and i.shape.is_tuple for s in self.steps.values() for i in s.instructions)
