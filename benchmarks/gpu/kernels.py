"""Each kernel of a program alone on the device: its time, the bytes it must move, and how that compares with a copy.

The kernels of one instruction are one measurement: a scan of one pass begins with a kernel that clears its counters,
and a second launch without it would read and write outside of its arrays.

Before every timed launch a copy sweeps the caches, so that data comes from memory. The copy bandwidth is measured in
the same run, with the same events.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from benchmarks.gpu.prepare import KernelFacts
from heron.runtime.cuda.device import Device
from heron.runtime.cuda.executable import CudaExecutable
from heron.runtime.cuda.timer import Timer
from heron.runtime.thunks import CopyThunk, KernelThunk, Thunk, walk

COPY = 1 << 30


@dataclass(frozen=True, slots=True)
class KernelRow:
    """One kernel, or the kernels of one instruction. Seconds of one launch (the median and the best), measured and by
    the model; ``bytes`` it must move at least, ``flops`` it does; ``copy``: the bytes a second that a copy of this run
    moved, read and written together."""

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
    best: float = 0.0

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
    """Every distinct kernel, or group of one instruction's kernels, at the first place that runs it, on the memory a
    run of the whole program left behind."""
    device, loaded = executable.device, executable.load()
    given = executable.put(arrays)
    with device.at_work(name):
        bases, made = executable.addresses(loaded, given)
        loaded.run(bases)
        device.synchronize()
        for group in groups(executable.program.thunks):
            commands = [loaded.command(thunk) for thunk in group]
            for command in commands:
                command.point(bases)
            kernels = [t.kernel for t in group if isinstance(t, KernelThunk)]
            own = [facts[k] for k in dict.fromkeys(kernels)]
            times = timer.times(lambda run=commands: [c.enqueue(device.stream) for c in run], repeats)
            yield KernelRow(
                name,
                " + ".join(kernels),
                own[-1].launches,
                statistics.median(times),
                sum(f.model_seconds for f in own),
                max(f.bytes for f in own),
                max(f.flops for f in own),
                copy,
                max(f.peak_flops for f in own),
                own[-1].story,
                min(times),
            )
        del made  # not before: it is used


def groups(thunks: tuple[Thunk, ...]) -> Iterator[Sequence[Thunk]]:
    """The steps that are measured together: kernels and copies of one instruction, in order; each set of kernels
    once."""
    seen: set[tuple[str, ...]] = set()
    steps = (t for t in walk(thunks) if isinstance(t, (KernelThunk, CopyThunk)))
    for _, group in groupby(steps, key=lambda t: t.source):
        found = list(group)
        kernels = tuple(t.kernel for t in found if isinstance(t, KernelThunk))
        if kernels and kernels not in seen:
            seen.add(kernels)
            yield found if len(kernels) > 1 else [t for t in found if isinstance(t, KernelThunk)]
