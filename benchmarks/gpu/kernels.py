"""Each kernel of a program alone on the device: its time, the bytes it must move, and how that compares with a copy.

Before every timed launch a copy sweeps the caches, so that data comes from memory. The copy bandwidth is measured in
the same run, with the same events.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from heron.analysis.cost.estimate import estimate
from heron.analysis.cost.kernel import kernel_cost
from heron.runtime.cuda.device import Device
from heron.runtime.cuda.executable import CudaExecutable
from heron.runtime.thunks import KernelThunk, walk
from heron.targets import get, libcuda

SWEEP = 256 << 20  # bytes: several times the largest cache
COPY = 1 << 30


@dataclass(frozen=True, slots=True)
class KernelRow:
    """One kernel. Seconds of one launch, measured and by the model; ``bytes`` it must move at least, ``flops`` it does;
    ``copy``: the bytes a second that a copy of this run moved, read and written together."""

    program: str
    kernel: str
    launches: int
    seconds: float
    model_seconds: float
    bytes: float
    flops: float
    copy: float
    peak_flops: float
    story: str

    @property
    def bandwidth(self) -> float:
        """Bytes a second."""
        return self.bytes / self.seconds

    @property
    def roofline(self) -> float:
        """The time that memory or arithmetic needs at least, over the time it took."""
        least = max(self.bytes / self.copy, self.flops / self.peak_flops if self.peak_flops else 0.0)
        return least / self.seconds


class Timer:
    """Times work on a device's stream by events, the caches swept before each."""

    def __init__(self, device: Device, sweep: int = SWEEP) -> None:
        self.device, self.driver, self.sweep = device, device.driver, sweep
        self._start, self._end = device.event(timed=True), device.event(timed=True)
        self._from, self._to = (device.memory.allocate(sweep) for _ in range(2))

    def close(self) -> None:
        """Give its memory back."""
        for address in (self._from, self._to):
            self.device.memory.free(address, self.sweep)

    def seconds(self, work: Callable[[], None], repeats: int) -> float:
        """The median time of one run of `work`."""
        d, stream = self.driver, self.device.stream
        times = []
        for _ in range(repeats + 1):
            d.cuMemcpyDtoDAsync_v2(self._to, self._from, self.sweep, stream)
            d.cuEventRecord(self._start, stream)
            work()
            d.cuEventRecord(self._end, stream)
            d.cuEventSynchronize(self._end)
            times.append(libcuda.elapsed(d, self._start, self._end))
        return statistics.median(times[1:])  # the first loads the code


def copy_bandwidth(device: Device, timer: Timer, size: int = COPY, repeats: int = 10) -> float:
    """Bytes read and written a second by a copy within the device's memory."""
    origin, target = device.memory.allocate(size), device.memory.allocate(size)
    try:
        seconds = timer.seconds(
            lambda: device.driver.cuMemcpyDtoDAsync_v2(target, origin, size, device.stream), repeats
        )
    finally:
        device.memory.free(origin, size)
        device.memory.free(target, size)
    return 2 * size / seconds


def measure(
    name: str, executable: CudaExecutable, arrays: list[np.ndarray], copy: float, timer: Timer, repeats: int = 20
) -> Iterator[KernelRow]:
    """Every distinct kernel at the first place that runs it, on the memory a run of the whole program left behind."""
    device, loaded = executable.device, executable.load()
    with device.at_work(name):
        given = executable.put(arrays)
        bases, made = executable.addresses(loaded, given)
        loaded.run(bases)
        device.synchronize()
        target = get(executable.target)
        costs = _costs(executable)
        launches: dict[str, list[KernelThunk]] = {}
        for thunk in walk(executable.program.thunks):
            if isinstance(thunk, KernelThunk):
                launches.setdefault(thunk.kernel, []).append(thunk)
        for kernel, thunks in launches.items():
            command = loaded.command(thunks[0])
            command.point(bases)
            seconds = timer.seconds(lambda c=command: c.enqueue(device.stream), repeats)
            cost = costs[kernel]
            predicted = estimate(cost, target)
            peak = target.flops_of("f32" if cost.unit.startswith("matrix") else cost.unit)
            yield KernelRow(
                name,
                kernel,
                len(thunks),
                seconds,
                predicted.seconds,
                cost.distinct,
                cost.flops,
                copy,
                peak,
                executable.program.kernels[kernel].story,
            )
        del made


def _costs(executable: CudaExecutable) -> dict[str, Any]:
    """What each kernel does, from the instruction it was made for."""
    _, uses = executable._stages.done.lowered
    return {name: kernel_cost(use.instruction) for name, use in uses.items()}
