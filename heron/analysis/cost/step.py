"""The time of a whole run of a program for several devices: what computes, what communicates, and what of that is
exposed: the device waits for it."""

from __future__ import annotations

from collections.abc import Iterator

from heron.analysis.cost.async_pairs import is_start, order_of, run_time, times_of
from heron.analysis.cost.communication import WAYS, Pace, communicates, link_seconds, pace, payload_bytes
from heron.analysis.cost.program import trips_of
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.records import dataclass
from heron.targets import Target


@dataclass(frozen=True, slots=True)
class Exchange:
    """A collective: `runs` times, each of `seconds`, of which the device waits for `exposed`.

    ``bytes``: the larger of operands and results; ``wire_bytes``: sent by each device in a run; ``known`` is false
    inside a loop whose count is not.
    """

    instruction: Instruction
    pace: Pace
    runs: float
    known: bool
    bytes: int
    wire_bytes: float
    seconds: float
    exposed: float


@dataclass(frozen=True, slots=True)
class StepCost:
    """One run of a program: its seconds, and its collectives in order."""

    seconds: float
    exchanges: tuple[Exchange, ...]

    @property
    def communication(self) -> float:
        """Seconds of all collectives."""
        return sum(e.runs * e.seconds for e in self.exchanges)

    @property
    def exposed(self) -> float:
        """Seconds for which the device waits for collectives."""
        return sum(e.runs * e.exposed for e in self.exchanges)

    @property
    def compute(self) -> float:
        """All other seconds."""
        return self.seconds - self.exposed

    @property
    def wire_bytes(self) -> float:
        """Bytes that each device sends."""
        return sum(e.runs * e.wire_bytes for e in self.exchanges)


def step_cost(module: Module, target: Target) -> StepCost:
    """The cost of a run of one device's program on `target`, in the order of its schedule."""
    order = order_of(module.entry, module)
    seconds = run_time(range(len(order)), times_of(order, module, target))[0]
    return StepCost(seconds, tuple(_exchanges(module.entry, module, target, 1.0, True)))


def _exchanges(c: Computation, module: Module, target: Target, runs: float, known: bool) -> Iterator[Exchange]:
    order = order_of(c, module)
    times = times_of(order, module, target)
    waited = run_time(range(len(order)), times)[1]
    for n, i in enumerate(order):
        op = communicates(i)
        if op is not None:
            pair = times.by_start.get(n)
            seconds = link_seconds(op, module, target)
            yield _exchange(op, module, target, (runs, known), seconds, waited[pair.done] if pair else seconds)
        elif i.has(Trait.CONTROL_FLOW) or is_start(i):
            yield from _called(i, module, target, runs, known)


def _called(i: Instruction, module: Module, target: Target, runs: float, known: bool) -> Iterator[Exchange]:
    if i.opcode == "while":
        trips = trips_of(i)
        known, runs = known and trips is not None, runs * (1.0 if trips is None else trips)
    found = [list(_exchanges(c, module, target, runs, known and i.opcode != "conditional")) for c in i.called]
    if i.opcode == "conditional":  # the dearest branch
        found = [max(found, key=lambda exchanges: sum(e.exposed for e in exchanges), default=[])]
    for exchanges in found:
        yield from exchanges


def _exchange(
    op: Instruction, module: Module, target: Target, runs: tuple[float, bool], seconds: float, exposed: float
) -> Exchange:
    found, size = pace(op, module, target), payload_bytes(op)
    wire = size * WAYS[op.opcode.removesuffix("-start")].part(found.members) if found.rings else 0.0
    return Exchange(op, found, *runs, size, wire, seconds, exposed)
