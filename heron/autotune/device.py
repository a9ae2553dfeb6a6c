"""Measuring candidates on a GPU, each checked against the evaluator first."""

from __future__ import annotations

import time

import numpy as np

from heron.analysis.blocks.config import BlockConfig
from heron.autotune.fragments import Fragment, executable_of
from heron.errors import HeronError
from heron.hlo.evaluator import evaluate
from heron.options import Options
from heron.runtime.cuda.array import put
from heron.runtime.cuda.executable import CudaExecutable
from heron.targets import Target

#: runs before the clock starts, runs that are timed, and sets of arrays, so that caches hold nothing of the last run
WARM_UP, RUNS, SETS = 3, 20, 4


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
    """Measures on the GPU of this machine."""

    def __init__(self, target: Target, options: Options) -> None:
        self.target, self.options = target, options

    def __call__(self, fragment: Fragment, config: BlockConfig) -> float:
        """Seconds of one run, the median of several over changing arrays. Raises RUN030 without a GPU, TUNE010."""
        executable = executable_of(fragment, config, self.target, self.options)
        assert isinstance(executable, CudaExecutable)
        sets = [inputs_of(fragment, seed) for seed in range(SETS)]
        check(fragment, executable(*sets[0]), sets[0])
        device = executable.device
        arrays = [[put(a, device) for a in inputs] for inputs in sets]
        seconds: list[float] = []
        for n in range(WARM_UP + RUNS):
            device.synchronize()
            start = time.perf_counter()
            executable.on_device(*arrays[n % SETS])
            device.synchronize()
            seconds.append(time.perf_counter() - start)
        executable.unload()
        return float(np.median(seconds[WARM_UP:]))
