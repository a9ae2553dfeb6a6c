"""Asynchronous ops of a computation, and what they and all its steps take: what a schedule's time is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from heron.analysis.cost.communication import WAYS, communicates, copy_seconds, link_seconds
from heron.analysis.cost.program import computation_seconds, trips_of
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.records import dataclass
from heron.targets import Target

#: how many ops of a kind can be under way at once
LANES: Mapping[str, int] = {"collective": 1, "permute": 1, "transfer": 2, "copy": 2, "stream": 1}


@dataclass(frozen=True, slots=True)
class Pair:
    """Work that step ``start`` begins and step ``done`` waits for: `seconds` on `resource`."""

    start: int
    done: int
    seconds: float
    resource: str


@dataclass(slots=True)
class Times:
    """``seconds[n]`` that step `n` keeps the device busy; ``pairs`` by the step that waits (`done`), and by `start`.

    ``uses[n]``: resources that the computations of step `n` need while it runs. ``lanes``: how many of a resource's ops
    can be under way at once (those not named: one).
    """

    seconds: list[float]
    lanes: Mapping[str, int]
    by_start: dict[int, Pair] = field(default_factory=dict)
    by_done: dict[int, Pair] = field(default_factory=dict)
    uses: dict[int, set[str]] = field(default_factory=dict)


def is_start(i: Instruction) -> bool:
    return bool(i.op.done)


def times_of(
    instructions: Sequence[Instruction], module: Module, target: Target, lanes: Mapping[str, int] = LANES
) -> Times:
    """The times of a computation's instructions, which are the steps, on `target`, by the cost model."""
    found = Times([_busy(i, module, target, lanes) for i in instructions], lanes)
    number = {i: n for n, i in enumerate(instructions)}
    for n, i in enumerate(instructions):
        if is_start(i):
            done = _done_of(i)
            if done is not None:
                pair = Pair(n, number[done], _transfer(i, module, target), _resource(i))
                found.by_start[n] = found.by_done[pair.done] = pair
        elif i.has(Trait.CONTROL_FLOW):
            inside = {r for c in i.called for r in _resources(c)}
            if inside:
                found.uses[n] = inside
    return found


def run_time(order: Sequence[int], times: Times) -> tuple[float, dict[int, float]]:
    """Seconds the steps take in that order, and how many of them each pair (by its done) is waited for.

    Steps run one after the other; what a start began runs beside them, when one of its resource's lanes is free.
    """
    now, over, waited = 0.0, dict[int, float](), dict[int, float]()
    lanes: dict[str, list[float]] = {}
    for n in order:
        pair = times.by_start.get(n)
        if pair is not None:
            free = lanes.setdefault(pair.resource, [0.0] * times.lanes.get(pair.resource, 1))
            lane = free.index(min(free))
            free[lane] = over[pair.done] = max(now, free[lane]) + pair.seconds
        elif n in over:
            waited[n] = max(0.0, over[n] - now)
            now += waited[n]
        for resource in times.uses.get(n, ()):  # what it runs has to wait for those lanes too
            now = max(now, *lanes.get(resource, (0.0,)))
        now += times.seconds[n]
    return now, waited


def order_of(c: Computation, module: Module) -> list[Instruction]:
    """The instructions of a computation in the order of the schedule, or in one that is possible."""
    return (module.schedule or {}).get(c) or c.post_order()


def _busy(i: Instruction, module: Module, target: Target, lanes: Mapping[str, int]) -> float:
    if is_start(i):
        return target.launch_seconds
    if i.opcode in WAYS:  # nothing else runs meanwhile
        return target.launch_seconds + link_seconds(i, module, target)
    if i.has(Trait.CONTROL_FLOW) and any(is_start(j) for c in i.called for j in c.instructions):
        return _inside(i, module, target, lanes)
    return computation_seconds([i], module, target)


def _inside(i: Instruction, module: Module, target: Target, lanes: Mapping[str, int]) -> float:
    """Seconds of a loop, a branch or a call that hides transfers of its own."""

    def seconds(c: Computation) -> float:
        order = order_of(c, module)
        return run_time(range(len(order)), times_of(order, module, target, lanes))[0]

    if i.opcode == "while":
        trips = trips_of(i)
        # a GPU's loops of known length are counted by the host
        tests = trips + 1 if trips is not None and not target.is_gpu else 2.0 if trips is None else 0.0
        return tests * seconds(i.condition) + (1.0 if trips is None else trips) * seconds(i.body)
    return max(map(seconds, i.called), default=0.0)


def _transfer(i: Instruction, module: Module, target: Target) -> float:
    moved = communicates(i)
    if moved is not None:
        return link_seconds(moved, module, target)
    if i.opcode == "copy-start":
        return copy_seconds(i, target)
    return computation_seconds(order_of(i.calls, module), module, target)


def _resource(i: Instruction) -> str:
    moved = communicates(i)
    if moved is not None:
        return WAYS[moved.opcode.removesuffix("-start")].resource
    return "copy" if i.opcode == "copy-start" else "stream"


def _done_of(i: Instruction) -> Instruction | None:
    """The op that waits for what `i` begins, through updates; None when nothing does."""
    at = i
    while True:
        following = next((u for u in at.users if u.opcode in (i.op.done, "async-update")), None)
        if following is None or following.opcode == i.op.done:
            return following
        at = following


def _resources(c: Computation) -> set[str]:
    found: set[str] = set()
    for i in c.instructions:
        if is_start(i) or i.opcode in WAYS:
            found.add(_resource(i))
        elif i.has(Trait.CONTROL_FLOW):
            found.update(*map(_resources, i.called))
    return found
