"""Seconds a kernel needs on a target, by a roofline with what a real machine adds: launches, caches, idle cores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from heron.analysis.cost.kernel import KernelCost, Read
from heron.targets import Target

#: a GPU core issues one memory transaction of this many bytes a clock: few cores cannot use all bandwidth
TRANSACTION = 32
#: elements a block of a loop kernel works on: 128 threads of 4
BLOCK = 512
#: how much faster than memory caches deliver what is read again: the shared one, those of the cores
SHARED_CACHE, CORE_CACHE = 2.5, 8.0
#: the part of peak a library's product reaches
LIBRARY = 0.8


@dataclass(frozen=True, slots=True)
class Estimate:
    """``seconds`` = launch + the longer of compute and memory. ``ideal``: what peak rates and the least bytes allow."""

    launch: float
    compute: float
    memory: float
    ideal: float

    @property
    def seconds(self) -> float:
        return self.launch + max(self.compute, self.memory)

    @property
    def bound(self) -> Literal["launch", "compute", "memory"]:
        """What takes most of the time."""
        most = max(self.compute, self.memory)
        if self.launch >= most:
            return "launch"
        return "compute" if self.compute >= self.memory else "memory"

    @property
    def fraction(self) -> float:
        """Of the roofline: ideal time over estimated time, at most 1."""
        return min(1.0, self.ideal / self.seconds) if self.seconds > 0 else 1.0


def estimate(cost: KernelCost, target: Target) -> Estimate:
    """The time of one run of a kernel on `target`, nothing else running."""
    rate = _rate(cost.unit, target)
    busy = _busy(cost, target)
    compute = cost.flops / (rate * busy) if rate else 0.0
    if cost.unit.startswith("matrix"):
        compute /= LIBRARY
    bandwidth = target.memory_bandwidth
    memory = sum(_read_seconds(r, cost, target) for r in cost.reads)
    memory += cost.written / _reached(bandwidth, cost, target)
    if target.kind == "cpu" and cost.distinct <= target.l3_bytes:
        memory /= CORE_CACHE if cost.distinct <= target.l2_bytes else SHARED_CACHE
    ideal = max(cost.flops / rate if rate else 0.0, cost.distinct / bandwidth)
    return Estimate(target.launch_seconds, compute, memory, ideal)


def _rate(unit: str, target: Target) -> float:
    """Flops a second of the machine's units of that kind. Without rates of its own for a type, f32's."""
    if not unit.startswith("matrix"):
        return target.flops_of(unit)
    name = unit.partition(" ")[2]
    family = name[:2] if name[:2] == "f8" else name
    # a product of f32 is done in f32, not rounded to tf32: the dtype decides
    return target.flops_of("f64" if name in ("f64", "c128") else family)


def _busy(cost: KernelCost, target: Target) -> float:
    """The part of the machine's cores that has work."""
    if target.kind == "cpu" or cost.unit.startswith("matrix"):
        return 1.0
    return min(1.0, max(1.0, cost.work_items / BLOCK) / target.cores)


def _reached(bandwidth: float, cost: KernelCost, target: Target) -> float:
    if target.kind == "cpu":
        return bandwidth
    blocks = max(1.0, cost.work_items / BLOCK)
    return min(bandwidth, blocks * TRANSACTION * target.clock_hz)


def _read_seconds(r: Read, cost: KernelCost, target: Target) -> float:
    """The first read of a byte comes from memory, later ones from a cache if all of it fits there."""
    bandwidth = target.memory_bandwidth
    again = bandwidth * (r.used if target.kind == "gpu" else 1.0)
    shared, own = (target.l2_bytes, target.l1_bytes * target.cores)
    if target.kind == "cpu":
        shared, own = target.l3_bytes, target.l2_bytes
    if r.distinct <= shared:
        again = bandwidth * (CORE_CACHE if r.distinct <= own else SHARED_CACHE)
    first = bandwidth * (r.used if target.kind == "gpu" else 1.0)
    more = max(0.0, r.total - r.distinct)
    return r.distinct / _reached(first, cost, target) + more / _reached(again, cost, target)
