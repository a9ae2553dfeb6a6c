"""How near a program is to what the machine allows, and what the rest of its time goes into."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.performance.machine import Rates, measured_target
from heron.backends.compiler import Compilation
from heron.backends.cpu.profile import Row, rows
from heron.cli import values
from heron.cli.tasks.profile import fastest
from heron.hlo.text import parse
from heron.options import Options
from heron.targets import get
from heron.trace import Trace

#: seconds of a step below which starting it counts, and from which on a second thread would help
_SHORT, _LONG = 3e-6, 2e-5

#: what may hold a program back, and what that means of the steps counted there
KINDS = {
    "memory": "kernels and copies whose bytes take longer than their arithmetic",
    "compute": "kernels whose arithmetic takes longer than their bytes",
    "library": "products, convolutions, factorisations, transforms and sorts of libraries",
    "one thread": "kernels that no second thread helps with",
    "latency": "steps so short that starting them counts, and what lies between steps",
}


@dataclass(frozen=True, slots=True)
class Part:
    """The steps of one kind: seconds, and those that the machine's rates allow."""

    kind: str
    seconds: float
    ideal: float


@dataclass(frozen=True, slots=True)
class Limits:
    """A program's time by what bounds it, the longest part first. ``intensity``: flops for each byte;
    ``by_compute``: whether the machine needs longer for the flops."""

    seconds: float
    intensity: float
    by_compute: bool
    parts: tuple[Part, ...]

    @property
    def roofline(self) -> float:
        """The part of the machine's best time for these steps, at most 1."""
        return min(1.0, sum(p.ideal for p in self.parts) / self.seconds)

    @property
    def next(self) -> str:
        """What to work on next, in words."""
        lost = max(self.parts, key=lambda p: p.seconds - p.ideal)
        share, reached = lost.seconds / self.seconds, min(1.0, lost.ideal / lost.seconds)
        if reached >= 0.9:
            return f"{lost.kind}: at the machine's rate"
        if lost.kind in ("one thread", "latency"):
            return f"{lost.kind}: {share:.0%} of the time"
        return f"{lost.kind}: {share:.0%} of the time, at {reached:.0%} of its rate"


def measure(path: Path, rates: Rates, runs: int = 3) -> Limits:
    """Limits of the HLO program in a file, by the fastest of some runs."""
    module = parse(path.read_text(), filename=str(path))
    inputs = values.random(module, 0)
    options, trace = Options(profile=True, threads=rates.threads), Trace(module.name, "cpu")
    compilation = Compilation(module, get("cpu"), options, trace)
    executable: Any = compilation.executable()
    total, steps = fastest(executable, inputs, runs)
    alone = {k.name for k in executable.kernels if k.notes.get("threads", "one").startswith("one")}
    found = rows(steps, compilation.scheduled, measured_target(rates))
    return limits(found, total, rates, alone if rates.threads > 1 else set())


def limits(found: list[Row], total: float, rates: Rates, alone: set[str]) -> Limits:
    """Rows of a profile as limits; ``alone``: kernels that one thread runs."""
    sums: dict[str, list[float]] = {}
    for r in found:
        part = sums.setdefault(_kind(r, rates, alone), [0.0, 0.0])
        part[0] += r.seconds
        part[1] += min(r.ideal, r.seconds)
    between = sums.setdefault("latency", [0.0, 0.0])
    between[0] += max(0.0, total - sum(r.seconds for r in found))
    parts = sorted((Part(k, s, i) for k, (s, i) in sums.items() if s > 0), key=lambda p: -p.seconds)
    flops, moved = sum(r.flops for r in found), sum(r.bytes for r in found)
    by_compute = flops / rates.f32 > moved / rates.bandwidth
    return Limits(total, flops / moved if moved else math.inf, by_compute, tuple(parts))


def _kind(r: Row, rates: Rates, alone: set[str]) -> str:
    each = r.seconds / max(1, r.runs)
    if r.kind not in ("kernel", "copy", "random state"):
        return "library"
    if each < _SHORT:
        return "latency"
    if r.name in alone and each >= _LONG:
        return "one thread"
    return "compute" if r.flops / rates.f32 > r.bytes / rates.bandwidth else "memory"
