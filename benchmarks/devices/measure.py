"""Times of both sides of a program, in turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import exp, log
from typing import Any

import jax

from benchmarks.devices.case import PROGRAMS
from benchmarks.devices.sides import Heron, Xla, worst_error

SIDES = ("xla", "heron")


@dataclass
class Times:
    """Milliseconds of each turn: of the clock, and of the process's threads together."""

    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def take(self, run: Callable[[], Any]) -> Any:
        """The result of a run, whose times are noted."""
        cpu, wall = time.process_time(), time.perf_counter()
        result = run()
        self.wall.append((time.perf_counter() - wall) * 1e3)
        self.cpu.append((time.process_time() - cpu) * 1e3)
        return result


@dataclass
class Row:
    """A program: times by side, and the largest error of an output."""

    name: str
    run: dict[str, Times]
    compile: dict[str, Times]
    error: float = 0.0
    #: bytes of scratch of a device, by side
    scratch: dict[str, int] = field(default_factory=dict)

    def milliseconds(self, what: str, side: str) -> float:
        """The median time of the clock."""
        return statistics.median(getattr(self, what)[side].wall)

    def ratio(self, what: str, clock: str = "wall") -> float:
        """heron over XLA: the median of the turns' ratios, so that a busy machine hurts both alike."""
        xla, heron = (getattr(getattr(self, what)[side], clock) for side in SIDES)
        return statistics.median(h / x for x, h in zip(xla, heron, strict=True))

    def least(self, what: str) -> float:
        """heron over XLA: the ratio of the fastest turns, as on a machine that does nothing else."""
        xla, heron = (min(getattr(self, what)[side].wall) for side in SIDES)
        return heron / xla

    def record(self) -> dict[str, Any]:
        """For a JSON file."""
        found: dict[str, Any] = {"name": self.name, "error": self.error, "scratch_bytes": self.scratch}
        for what in ("run", "compile"):
            if getattr(self, what)["xla"].wall:
                found[f"{what}_ms"] = {side: self.milliseconds(what, side) for side in SIDES}
                found[f"{what}_ratio"] = self.ratio(what)
                found[f"{what}_cpu_ratio"] = self.ratio(what, "cpu")
        return found


def measured(name: str, runs: int, seconds: float, compiles: int, partitioned: bool) -> Row:
    """One program: up to so many turns, as long as they take no more than so many seconds together."""
    xla = Xla(PROGRAMS[name](), name)
    heron = Heron(xla, partitioned)
    wanted, found = xla.run(), heron.run()
    row = Row(name, _both(), _both())
    began = time.perf_counter()
    for n in range(runs):
        if n >= 2 and time.perf_counter() - began > seconds:
            break
        for side, run in _turn(n, xla.run, heron.run):
            row.run[side].take(run)
    began = time.perf_counter()
    for n in range(compiles):
        if n >= 2 and time.perf_counter() - began > seconds:
            break
        for side, prepare in _turn(n, xla.prepared, heron.prepared):
            row.compile[side].take(prepare())
    row.scratch = {"xla": xla.scratch, "heron": heron.executable.memory.temp}
    row.error = worst_error(wanted, heron, found)
    jax.clear_caches()
    return row


def mean(ratios: list[float]) -> float:
    """The geometric mean."""
    return exp(sum(map(log, ratios)) / len(ratios))


def _both() -> dict[str, Times]:
    return {side: Times() for side in SIDES}


def _turn(n: int, xla: Callable[[], Any], heron: Callable[[], Any]) -> list[tuple[str, Callable[[], Any]]]:
    """Both sides, each one first in every second turn."""
    pair = [("xla", xla), ("heron", heron)]
    return pair[::-1] if n % 2 else pair
