"""The program that a report is about: compiled, and on this machine's CPU also run and timed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from heron.backends.compiler import Compilation
from heron.collector import collector_paused
from heron.compiling import compile_module
from heron.hlo.ir.module import Module
from heron.options import Options
from heron.peer import XlaProgram
from heron.records import dataclass
from heron.targets import Target
from heron.trace import Trace

if TYPE_CHECKING:
    from heron.runtime.executable import Executable

#: runs of a measurement: at least so many, and more of them until the time is spent; fewer once it takes too long
_RUNS, _SECONDS, _TOO_LONG = 5, 0.5, 10.0


@dataclass
class Subject:
    """A compiled program with its record.

    Attributes:
        given: the module before any pass.
        scheduled: the module whose instructions are kernels.
        seconds: of the fastest run; None where the program was not run.
        measured: seconds of all runs of a step in one run of the program, by the step's instruction.
        peer: the same program compiled by XLA:CPU, and the comparison; None where it was not asked for.
    """

    given: Module
    target: Target
    options: Options
    trace: Trace
    executable: Executable
    scheduled: Module
    seconds: float | None = None
    measured: dict[str, float] = field(default_factory=dict)
    peer: Peer | None = None

    @staticmethod
    def compile(module: Module, target: Target, options: Options, trace: Trace) -> Subject:
        """Compile `module` for `target`. Raises what `heron.compile` raises."""
        trace.options = options.changed()
        executable = compile_module(module, target, options, trace)
        executable.examine()
        trace.memory = trace.memory or dict(executable.memory)
        stages: Any = executable.stages
        return Subject(module, target, options, trace, executable, stages.compilation.scheduled)

    def run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Run on arguments in parameter order, and keep the time of the fastest run; gives the outputs."""
        checked = list(arrays)
        outputs = self.executable.run(checked)
        self.seconds = fastest(lambda: self.executable.run(checked))
        return outputs

    def time_steps(self, arrays: Sequence[np.ndarray]) -> None:
        """Time each kernel and library call, by a second executable with counters; for this machine's CPU."""
        with collector_paused():
            compilation = Compilation(self.given, self.target, self.options.replace(profile=True), Trace())
            executable: Any = compilation.executable()
        profile = executable.profile
        best = float("inf")
        executable.run(list(arrays))
        start = time.perf_counter()
        for n in range(_RUNS):
            if _is_enough(n, start):
                break
            profile.reset()
            executable.run(list(arrays))
            if profile.seconds < best:
                best = profile.seconds
                self.measured = {}
                for step in profile.steps():
                    source = step.thunk.source
                    self.measured[source] = self.measured.get(source, 0.0) + step.seconds


@dataclass(frozen=True, slots=True)
class Peer:
    """XLA:CPU on the same program and arguments. ``seconds``: of its fastest run; ``ours``: heron's, by turns with it.

    ``difference``: the largest difference of an output element, divided by the output's largest magnitude (at least 1).
    """

    program: XlaProgram
    seconds: float
    ours: float
    difference: float

    @staticmethod
    def of(subject: Subject, arrays: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> Peer:
        """Compile with XLA and run both by turns. Raises CLI081 where XLA does not take the program."""
        program = XlaProgram.compile(subject.given)
        placed, given = program.place(arrays), list(arrays)
        expected = program.run(placed)
        theirs = ours = float("inf")
        start = time.perf_counter()
        for n in range(1000):
            theirs = min(theirs, _once(lambda: program.run(placed)))
            ours = min(ours, _once(lambda: subject.executable.run(given)))
            if _is_enough(n, start, 2):
                break
        return Peer(program, theirs, ours, largest_difference(outputs, expected))


def fastest(run: Any) -> float:
    """Seconds of the fastest of several runs."""
    best, start = float("inf"), time.perf_counter()
    for n in range(1000):
        best = min(best, _once(run))
        if _is_enough(n, start):
            break
    return best


def _is_enough(n: int, start: float, programs: int = 1) -> bool:
    """Whether run `n` of each program, counted from 0, is the last of a measurement that began at `start`."""
    spent = time.perf_counter() - start
    return spent > _TOO_LONG * programs or n >= _RUNS and spent > _SECONDS * programs


def largest_difference(outputs: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> float:
    """Over all outputs, relative to each output's largest magnitude or 1; infinite where NaNs or shapes differ."""
    if len(outputs) != len(expected):
        return float("inf")
    most = 0.0
    for a, b in zip(outputs, expected, strict=True):
        if a.shape != b.shape:
            return float("inf")
        kind = np.complex128 if a.dtype.kind == "c" else np.float64
        x, y = a.astype(kind), b.astype(kind)
        both = (x == y) | (np.isnan(x) & np.isnan(y))
        if both.all():
            continue
        if not (np.isfinite(x) == np.isfinite(y)).all():
            return float("inf")
        rest = ~both & np.isfinite(y)
        if (~both & ~np.isfinite(y)).any():
            return float("inf")
        scale = max(1.0, float(np.abs(y[np.isfinite(y)]).max(initial=0.0)))
        most = max(most, float(np.abs(x[rest] - y[rest]).max(initial=0.0)) / scale)
    return most


def _once(run: Any) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
