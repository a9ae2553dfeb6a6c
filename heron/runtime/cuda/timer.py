"""The time of work on a device, by the device's own clock."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from heron.buffers.assignment import Slice
from heron.runtime.cuda import helpers
from heron.runtime.cuda.commands import Kernel
from heron.targets import libcuda

if TYPE_CHECKING:
    from heron.runtime.cuda.device import Device

SWEEP = 256 << 20  # bytes: several times the largest cache
#: seconds until clocks have risen, of a measurement at least, and of idleness after which clocks may have fallen
WARM, LEAST, _PAUSE = 0.2, 0.02, 0.1
_MOST_RUNS, _SWEEPS = 2000, 16
_GRID, _BLOCK, _RESULT = (1024, 1, 1), (256, 1, 1), 256


class Timer:
    """Times work on a device's stream by events.

    An idle GPU has low clocks: before the first measurement after a pause the caches are swept until they have risen.

    Before each run ``sweep`` bytes are read, so that data comes from memory and not from where the last run left it,
    and no cache has anything to write back. The reading takes longer than enqueueing the work: the host's time is no
    part of what is measured.
    """

    def __init__(self, device: Device, sweep: int = SWEEP, warm: float = WARM, least: float = LEAST) -> None:
        """``warm``: seconds of sweeps after a pause; ``least``: seconds of a measurement, by the host's clock."""
        self.device, self.driver, self.sweep = device, device.driver, sweep
        self.warm, self.least = warm, least
        self._busy_until = 0.0
        self._start, self._end = device.event(timed=True), device.event(timed=True)
        self._memory = device.memory.allocate(sweep + _RESULT)
        self._module = device.load(helpers.SWEEP.encode(), "the timer")
        function = device.function(self._module, "heron_sweep")
        numbers = (sweep // 16, self._memory + sweep)
        self._sweep = Kernel(self.driver, function, _GRID, _BLOCK, [Slice(0, 0, sweep)], numbers)
        self._sweep.point([self._memory])

    def close(self) -> None:
        """Give its memory, events and code back."""
        self.device.memory.free(self._memory, self.sweep + _RESULT)
        for event in (self._start, self._end):
            self.driver.cuEventDestroy_v2(event)
        self.driver.cuModuleUnload(self._module)

    def once(self, work: Callable[[], Any]) -> float:
        """Seconds of one run of `work`, which enqueues on the device's stream; waits for its end."""
        d, stream = self.driver, self.device.stream
        self._sweep.enqueue(stream)
        d.cuEventRecord(self._start, stream)
        work()
        d.cuEventRecord(self._end, stream)
        d.cuEventSynchronize(self._end)
        return libcuda.elapsed(d, self._start, self._end)

    def seconds(self, work: Callable[[], Any], repeats: int, warm_up: int = 1) -> float:
        """The median of several runs after some that do not count: the first loads the code."""
        return statistics.median(self.times(work, repeats, warm_up))

    def times(self, work: Callable[[], Any], repeats: int, warm_up: int = 1) -> list[float]:
        """Seconds of each of at least `repeats` runs; more of them until the measurement is long enough."""
        self._raise_clocks()
        for _ in range(warm_up):
            self.once(work)
        end, found = time.perf_counter() + self.least, []
        while len(found) < repeats or time.perf_counter() < end and len(found) < _MOST_RUNS:
            found.append(self.once(work))
        self._busy_until = time.perf_counter() + _PAUSE
        return found

    def _raise_clocks(self) -> None:
        """Sweep the caches for a while, if the device has been idle."""
        now = time.perf_counter()
        end = now + self.warm
        while self._busy_until < now and time.perf_counter() < end:
            for _ in range(_SWEEPS):
                self._sweep.enqueue(self.device.stream)
            self.device.synchronize()
