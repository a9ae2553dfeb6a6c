"""Fitting: searches, one after the other, until a program's temp is within a limit or nothing helps any more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from heron.buffers.assign import ALIGNMENT, assign
from heron.buffers.memory import Memory
from heron.hlo.ir.module import Module
from heron.passes.schedule.remat.advance import advance
from heron.passes.schedule.remat.held import Held
from heron.passes.schedule.remat.rewrite import reschedule
from heron.passes.schedule.remat.search import Choice, Search
from heron.records import dataclass
from heron.targets import Target

#: searches at most; each sees the program as the one before left it
ROUNDS = 12


@dataclass(slots=True)
class Fit:
    """The outcome: whether the limit is met, temp before and after, and the values that are recomputed."""

    met: bool
    before: int
    temp: int
    choices: list[Choice] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Time all the work done again takes, as estimated."""
        return sum(c.seconds for c in self.choices)


@dataclass(frozen=True, slots=True)
class Fitter:
    """Takes a program's temp down on a machine. ``block``: instructions that may be computed again for one value."""

    target: Target
    block: int

    def sizes(self, module: Module) -> Memory:
        """Bytes of the program as it is, its buffers laid out as they will be."""
        return Memory.of(assign(module, alignment=ALIGNMENT[self.target.kind]))

    def fit(self, module: Module, limit: int, sizes: Mapping[str, int]) -> Fit:
        """Change the scheduled `module`, which has these sizes, so that its temp has at most `limit` bytes, or as few
        as can be had.

        Searches go by the bytes held at each tick. The loss of packing buffers is known only when it is done: then the
        goal is lowered by that, and searched for again.
        """
        found = Fit(sizes["temp"] <= limit, sizes["temp"], sizes["temp"])
        if found.met:
            return found
        goal = limit + sizes["outputs"] - sizes["aliased"]  # outputs hold values too before they are there
        held = _advanced(Held(module))
        for _ in range(ROUNDS):
            before = held.peak
            if before <= goal:
                found.temp = self.sizes(module)["temp"]
                if found.temp <= limit:
                    break
                goal = before - (found.temp - limit)
            backup = module.clone()
            choices = Search(held, goal, self.target, self.block).run()
            reschedule(held)
            held = _advanced(Held(module))
            if held.peak >= before:
                module.become(backup)
                break
            found.choices += choices
        if found.temp > limit:
            found.temp = self.sizes(module)["temp"]
        found.met = found.temp <= limit
        return found


def _advanced(held: Held) -> Held:
    """`held` with what frees memory moved up, where that does no harm."""
    module, order = held.module, held.module.schedule
    module.schedule = advance(held)
    if module.schedule == order:
        return held
    moved = Held(module)
    if moved.peak <= held.peak:
        return moved
    module.schedule = order
    return held
