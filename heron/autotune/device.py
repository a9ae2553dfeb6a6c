"""Measuring candidates on a GPU, each checked against the evaluator first."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable

import numpy as np

from heron.analysis.blocks.config import BlockConfig
from heron.autotune.fragments import Fragment, executable_of
from heron.errors import HeronError
from heron.hlo.evaluator import evaluate
from heron.options import Options
from heron.runtime.cuda.array import DeviceArray
from heron.runtime.cuda.executable import CudaExecutable
from heron.runtime.cuda.timer import SWEEP, Timer
from heron.runtime.executable import Executable
from heron.targets import Target

#: runs that do not count, and runs that do
WARM_UP, RUNS = 3, 20
#: a candidate whose first runs take so many times the quickest so far is not run more often
HOPELESS = 3.0


def inputs_of(fragment: Fragment, seed: int = 0) -> list[np.ndarray]:
    """Small whole numbers, whose products and sums no order of additions changes; floats above 0, where roots are."""
    rng = np.random.default_rng(seed)
    shapes = [o.shape for o in fragment.fusion.operands]
    return [rng.integers(s.element_type.is_float, 3, s.dims).astype(s.element_type.dtype) for s in shapes]


def check(fragment: Fragment, got: np.ndarray, inputs: list[np.ndarray]) -> None:
    """Raise TUNE010 when a candidate's result is not the evaluator's, but for the last bits of functions."""
    (wanted,) = evaluate(fragment.module, *inputs)
    narrow = wanted.dtype.itemsize < 4 and wanted.dtype.kind != "i"
    rtol = 2.0**-7 if narrow else 1e-5
    a, b = (np.asarray(x).astype(np.float64) for x in (got, wanted))
    if not np.allclose(a, b, rtol=rtol, atol=rtol, equal_nan=True):
        worst = float(np.nanmax(np.abs(a - b)))
        raise HeronError("TUNE010", f"'{fragment.fusion.name}' gives other values with these tiles", why=f"by {worst}")


class OnDevice:
    """Measures on the GPU of this machine, by its own clock, on arrays that no cache holds.

    ``build`` makes the program of a candidate.
    """

    def __init__(
        self, target: Target, options: Options, build: Callable[..., Executable] = executable_of, sweep: int = SWEEP
    ) -> None:
        self.target, self.options, self.build, self.sweep = target, options, build, sweep
        self._best: dict[str, float] = {}

    def __call__(self, fragment: Fragment, config: BlockConfig) -> float:
        """Seconds of one run, the median of several.

        Raises RUN030 without a GPU, TUNE010 for a wrong result, RUN044 for a kernel that faults, and RUN054 when one
        before it has taken the device along.
        """
        executable = self.build(fragment, config, self.target, self.options)
        assert isinstance(executable, CudaExecutable)
        inputs = inputs_of(fragment)
        try:
            check(fragment, executable(*inputs), inputs)
            seconds = self._measure(executable, executable.put(inputs), self._best.get(fragment.key, math.inf))
        finally:
            with contextlib.suppress(HeronError):  # of a device that is lost
                executable.unload()
        self._best[fragment.key] = min(seconds, self._best.get(fragment.key, math.inf))
        return seconds

    def _measure(self, executable: CudaExecutable, arrays: list[DeviceArray], best: float) -> float:
        device = executable.device
        with device.at_work(executable.name):
            timer = Timer(device, self.sweep)

            def work() -> None:
                executable.on_device(*arrays)

            try:
                first = timer.seconds(work, WARM_UP)
                return first if first > HOPELESS * best else timer.seconds(work, RUNS, warm_up=0)
            finally:
                timer.close()
