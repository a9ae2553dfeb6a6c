"""Seconds a kernel needs on a target, by a roofline with what a real machine adds: launches, caches, idle cores."""

from __future__ import annotations

from functools import cache
from typing import Literal

from heron.analysis.cost.kernel import KernelCost
from heron.analysis.cost.products import START, product_seconds
from heron.hlo.facts import having
from heron.hlo.ir.op import Trait
from heron.records import dataclass
from heron.targets import Target

#: a GPU core issues one memory transaction of this many bytes a clock: few cores cannot use all bandwidth
TRANSACTION = 32
#: elements a block of a loop kernel works on: 128 threads of 4
BLOCK = 512
#: how much faster than memory caches deliver what is read again: the shared one, those of the cores
SHARED_CACHE, CORE_CACHE = 2.5, 8.0
#: the part of peak that products reach on a CPU
LIBRARY = 0.8
#: what a CPU does for one element after the other: peak rates are those of vectors of f32
_ONE_BY_ONE = having(Trait.ONE_BY_ONE)


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
        """The term that dominates the time."""
        most = max(self.compute, self.memory)
        if self.launch >= most:
            return "launch"
        return "compute" if self.compute >= self.memory else "memory"

    @property
    def fraction(self) -> float:
        """Of the roofline: ideal time over estimated time, at most 1."""
        return min(1.0, self.ideal / self.seconds) if self.seconds > 0 else 1.0


class Clock:
    """A machine's rates, and the seconds that parts of a kernel take on it; ``items``: what threads do side by side."""

    __slots__ = ("_caches", "_cores", "_f32", "_f64", "_is_gpu", "_transactions", "bandwidth", "launch")

    def __init__(self, target: Target) -> None:
        self.launch, self.bandwidth = target.launch_seconds, float(target.memory_bandwidth)
        self._is_gpu, self._cores = target.is_gpu, target.cores
        self._f32, self._f64 = target.flops_of("f32"), target.flops_of("f64")
        self._transactions = TRANSACTION * float(target.clock_hz)
        own, shared = (target.l1_bytes * target.cores, target.l2_bytes)
        if not self._is_gpu:
            own, shared = target.l2_bytes, target.l3_bytes
        self._caches = own, shared

    def compute(self, flops: float, items: float, double: bool) -> float:
        """Seconds of arithmetic outside matrix units."""
        rate = self._f64 if double else self._f32
        return flops / (rate * self.busy(items)) if rate else 0.0

    def busy(self, items: float) -> float:
        """The part of the machine's cores that has work."""
        return min(1.0, max(1.0, items / BLOCK) / self._cores) if self._is_gpu else 1.0

    def most(self, items: float) -> float:
        """Bytes a second that so many threads can ask for."""
        return max(1.0, items / BLOCK) * self._transactions if self._is_gpu else self.bandwidth

    def write(self, size: float, most: float) -> float:
        """Seconds to store that many bytes; ``most``: see there."""
        return size / min(self.bandwidth, most)

    def read(self, distinct: float, total: float, used: float, most: float) -> float:
        """Seconds to read `total` bytes, `distinct` of them for the first time; the rest come from a cache that holds
        all. ``used``: the part of each transaction that is wanted."""
        bandwidth = self.bandwidth * used if self._is_gpu else self.bandwidth
        seconds = distinct / (bandwidth if bandwidth < most else most)
        if total <= distinct:
            return seconds
        own, shared = self._caches
        if distinct <= shared:
            bandwidth = self.bandwidth * (CORE_CACHE if distinct <= own else SHARED_CACHE)
        return seconds + (total - distinct) / (bandwidth if bandwidth < most else most)


@cache
def clock_of(target: Target) -> Clock:
    """The rates of a machine, worked out once."""
    return Clock(target)


def estimate(cost: KernelCost, target: Target) -> Estimate:
    """The time of one run of a kernel on `target`, nothing else running."""
    clock, rate = clock_of(target), _rate(cost.unit, target)
    most = clock.most(cost.work_items)
    memory = sum(clock.read(r.distinct, r.total, r.used, most) for r in cost.reads) + clock.write(cost.written, most)
    if not target.is_gpu and cost.distinct <= target.l3_bytes:
        memory /= CORE_CACHE if cost.distinct <= target.l2_bytes else SHARED_CACHE
    ideal = max(cost.flops / rate if rate else 0.0, cost.distinct / clock.bandwidth)
    launch = clock.launch + (START if target.is_gpu and cost.products else 0.0)
    return Estimate(launch, _compute(cost, rate, target), memory, ideal)


def _compute(cost: KernelCost, rate: float, target: Target) -> float:
    """Seconds of a kernel's arithmetic."""
    clock = clock_of(target)
    if target.is_gpu and cost.products:
        sums = sum(
            product_seconds(p, _rate("matrix " + p.type, target), _has_units(p.type), target) for p in cost.products
        )
        rest = max(0.0, cost.flops - sum(p.flops for p in cost.products))
        return sums + clock.compute(rest, cost.work_items, False)
    if cost.unit.startswith("matrix"):
        return cost.flops / rate / LIBRARY if rate else 0.0
    compute = cost.flops / (rate * clock.busy(cost.work_items)) if rate else 0.0
    if not target.is_gpu and cost.opcode in _ONE_BY_ONE:
        compute *= target.vector_bits / 32
    return compute


def _has_units(name: str) -> bool:
    """Whether a GPU's matrix units multiply elements of a type: f32 would be rounded first."""
    return name not in ("f32", "f64", "c64", "c128")


def _rate(unit: str, target: Target) -> float:
    """Flops a second of the machine's units of that kind. Without rates of its own for a type, f32's."""
    if not unit.startswith("matrix"):
        return target.flops_of(unit)
    name = unit.partition(" ")[2]
    family = name[:2] if name[:2] == "f8" else name
    # a product of f32 is done in f32, not rounded to tf32: the dtype decides
    return target.flops_of("f64" if name in ("f64", "c128") else family)
