"""Memory limits tried on a scheduled module: what each would cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from heron.hlo.ir.module import Module
from heron.passes.schedule.remat.fit import Fitter
from heron.passes.schedule.rematerialization import BLOCK
from heron.records import dataclass

if TYPE_CHECKING:
    from heron.backends.machine import Machine


@dataclass(frozen=True, slots=True)
class Trial:
    """The effect of a limit of `percent` of temp: ``temp`` bytes, with ``values`` recomputed by ``instructions`` in
    ``seconds``, as estimated. If the limit is not ``met``, the temp is the least found."""

    percent: int
    met: bool
    temp: int
    values: int
    instructions: int
    seconds: float


def trials(scheduled: Module, machine: Machine, percents: Sequence[int] = (80, 60, 40)) -> Iterator[Trial]:
    """Try limits on copies of a scheduled module, the next one only where the one before was met."""
    fitter = Fitter(machine.target, BLOCK)
    sizes = fitter.sizes(scheduled)
    for percent in percents if sizes["temp"] else ():
        found = fitter.fit(scheduled.clone(), sizes["temp"] * percent // 100, sizes)
        values, steps = sum(len(c.values) for c in found.choices), sum(c.steps for c in found.choices)
        yield Trial(percent, found.met, found.temp, values, steps, found.seconds)
        if not found.met:
            return
