"""Measuring candidates on a GPU, each checked against the evaluator first."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator

import numpy as np

from heron.autotune.fragments import executable_of
from heron.errors import HeronError
from heron.evaluator import evaluate
from heron.options import Options
from heron.passes.framework.measured import CUBLASLT, CUDNN, Fragment
from heron.runtime.cuda.array import DeviceArray
from heron.runtime.cuda.executable import CudaExecutable
from heron.runtime.cuda.timer import SWEEP, WARM, Timer
from heron.runtime.executable import Executable
from heron.runtime.thunks import LibraryThunk, walk
from heron.targets import Target

#: runs that do not count, and runs that do
WARM_UP, RUNS = 3, 20
#: a candidate whose first runs take so many times the quickest so far is not run more often
HOPELESS = 3.0


def inputs_of(fragment: Fragment, seed: int = 0) -> list[np.ndarray]:
    """Small whole numbers, whose products and sums no order of additions changes; floats above 0, where roots are."""
    rng = np.random.default_rng(seed)
    shapes = [p.shape for p in fragment.module.entry.parameters]
    return [rng.integers(s.element_type.is_float, 3, s.dims).astype(s.element_type.dtype) for s in shapes]


def check(fragment: Fragment, got: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    """Raise TUNE010 when a candidate's results are not the evaluator's, but for the last bits of functions."""
    for x, y in zip(got, wanted, strict=True):
        narrow = y.dtype.itemsize < 4 and y.dtype.kind not in "iu"
        rtol = 2.0**-7 if narrow else 1e-5
        kind = np.complex128 if y.dtype.kind == "c" else np.float64
        a, b = (np.asarray(v).astype(kind) for v in (x, y))
        if not np.allclose(a, b, rtol=rtol, atol=rtol, equal_nan=True):
            worst = float(np.nanmax(np.abs(a - b)))
            raise HeronError("TUNE010", f"'{fragment.name}' has other values with this candidate", why=f"by {worst}")


class OnDevice:
    """Measures on the GPU of this machine, by its own clock, on arrays that no cache holds.

    ``build`` makes the program of a candidate.
    """

    def __init__(
        self,
        target: Target,
        options: Options,
        build: Callable[..., Executable] = executable_of,
        sweep: int = SWEEP,
        warm: float = WARM,
    ) -> None:
        """``sweep``, ``warm``: of the `Timer`; the runs of a measurement are counted here."""
        self.target, self.options, self.build, self.sweep, self.warm = target, options, build, sweep, warm
        self._best: dict[str, float] = {}
        self._wanted: tuple[str, list[np.ndarray], list[np.ndarray]] = ("", [], [])

    def ways(self, fragment: Fragment, most: int) -> tuple[str, ...]:
        """The ways to do a fragment: of a library's call also what the library itself proposes on this device.

        Raises what building the program and opening the library raise.
        """
        if fragment.kind != "algorithm":
            return fragment.ways[:most]
        with self._built(fragment, fragment.ways[0]) as executable:
            calls = [t for t in walk(executable.program.thunks) if isinstance(t, LibraryThunk)]
            with executable.device.at_work(executable.name):
                proposed = [
                    (t.call.library, p) for t in calls for p in executable.load().device.calls.proposals(t, most)
                ]
        named = [f"{library} {p.number}" for library, p in proposed if library in (CUBLASLT, CUDNN)]
        return tuple(dict.fromkeys([*fragment.ways, *named]))[:most]

    def __call__(self, fragment: Fragment, way: str) -> float:
        """Seconds of one run, the median of several.

        Raises RUN030 without a GPU, TUNE010 for a wrong result, RUN044 for a kernel that faults, and RUN054 when one
        before it has taken the device along.
        """
        inputs, wanted = self._reference(fragment)
        best = self._best.get(fragment.key, math.inf)
        with self._built(fragment, way) as executable:
            check(fragment, executable.run(inputs), wanted)
            seconds = self._measure(executable, executable.put(inputs), best)
        self._best[fragment.key] = min(seconds, best)
        return seconds

    @contextlib.contextmanager
    def _built(self, fragment: Fragment, way: str) -> Iterator[CudaExecutable]:
        """The program of a candidate, with no trace of it left on the device at the end."""
        executable = self.build(fragment, way, self.target, self.options)
        assert isinstance(executable, CudaExecutable)
        try:
            yield executable
        finally:
            with contextlib.suppress(HeronError):  # of a device that is lost
                executable.unload()

    def _reference(self, fragment: Fragment) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Inputs and what the evaluator makes of them, computed once for all candidates of a fragment."""
        if self._wanted[0] != fragment.key:
            inputs = inputs_of(fragment)
            self._wanted = fragment.key, inputs, evaluate(fragment.module, *inputs)
        return self._wanted[1:]

    def _measure(self, executable: CudaExecutable, arrays: list[DeviceArray], best: float) -> float:
        device = executable.device
        with device.at_work(executable.name):
            timer = Timer(device, self.sweep, self.warm, least=0.0)

            def work() -> None:
                executable.on_device(*arrays)

            try:
                first = timer.seconds(work, WARM_UP)
                return first if first > HOPELESS * best else timer.seconds(work, RUNS, warm_up=0)
            finally:
                timer.close()
