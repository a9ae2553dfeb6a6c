"""Each kernel of a program alone on the device: its time, the bytes it must move, and how that compares with a copy.

Before every timed launch a copy sweeps the caches, so that data comes from memory. The copy bandwidth is measured in
the same run, with the same events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.gpu.prepare import KernelFacts
from heron.runtime.cuda.device import Device
from heron.runtime.cuda.executable import CudaExecutable
from heron.runtime.cuda.timer import Timer
from heron.runtime.thunks import KernelThunk, walk

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
    name: str,
    executable: CudaExecutable,
    facts: Mapping[str, KernelFacts],
    arrays: list[np.ndarray],
    copy: float,
    timer: Timer,
    repeats: int = 20,
) -> Iterator[KernelRow]:
    """Every distinct kernel at the first place that runs it, on the memory a run of the whole program left behind."""
    device, loaded = executable.device, executable.load()
    given = executable.put(arrays)
    with device.at_work(name):
        bases, made = executable.addresses(loaded, given)
        loaded.run(bases)
        device.synchronize()
        seen: set[str] = set()
        for thunk in walk(executable.program.thunks):
            if not isinstance(thunk, KernelThunk) or thunk.kernel in seen:
                continue
            seen.add(thunk.kernel)
            command = loaded.command(thunk)
            command.point(bases)
            seconds = timer.seconds(lambda c=command: c.enqueue(device.stream), repeats)
            f = facts[thunk.kernel]
            yield KernelRow(
                name, thunk.kernel, f.launches, seconds, f.model_seconds, f.bytes, f.flops, copy, f.peak_flops, f.story
            )
        del made  # not before: it is used
