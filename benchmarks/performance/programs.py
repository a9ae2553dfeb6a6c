"""Every program against its peers: XLA:CPU, NumPy, a warm cache, one thread, and the machine's own rates."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import heron
from benchmarks import compare, programs
from benchmarks.compare import Refused, Row, Worker
from benchmarks.performance import limits
from benchmarks.performance.limits import Limits
from benchmarks.performance.machine import Rates
from benchmarks.performance.numpy_forms import FORMS
from heron.cli import values
from heron.hlo.text import parse
from heron.options import Options

#: seconds until threads of other libraries have gone to sleep: OpenBLAS's look for work for 0.11 s after each product
_REST = 0.2
#: seconds that the turns of one comparison may take
_BUDGET = 4.0


@dataclass(frozen=True, slots=True)
class Program:
    """One program's figures, NaN where there is none."""

    name: str
    #: heron and XLA:CPU in turn, each in a process of its own that compiles nothing else
    row: Row
    #: compiling again when a cache of files has all code, in seconds
    warm: float = math.nan
    #: heron's time over NumPy's
    numpy: float = math.nan
    #: the time of one thread over that of all
    speedup: float = math.nan
    limits: Limits | None = None
    problems: tuple[str, ...] = ()

    def ratio(self, what: str) -> float:
        """heron over XLA:CPU: ``compile``, ``run``, ``temp_bytes``, ``warm`` or ``peak_bytes``; NaN without both."""
        if what == "warm":
            return self.warm / self.row.xla.median("compile")
        if what == "peak_bytes":
            ours, theirs = self.row.heron.peak_bytes, self.row.xla.peak_bytes
            return ours / theirs if ours and theirs else math.nan
        return self.row.ratio(what)

    @property
    def memory_light(self) -> bool:
        """Whether arithmetic, not memory, is what the program waits for."""
        return self.limits is not None and self.limits.by_compute


def measure(
    name: str, small: bool, repeats: int, rates: Rates, peer_python: str, cache: Path, tell: Callable[[str], None]
) -> Program:
    """All figures of one program; ``cache``: an empty folder, or one that only this function has filled."""
    problems: list[str] = []

    def attempt(what: str, action: Callable[[], float]) -> float:
        tell(what)
        try:
            return action()
        except Refused as refusal:
            problems.append(f"{what}: {refusal}")
            return math.nan

    path = programs.path(name, small)
    tell("XLA:CPU")
    row = _against_xla(name, small, repeats, peer_python)
    warm = attempt("cache", lambda: _warm(path, cache))
    peer = attempt("NumPy", lambda: _against_numpy(name, path, repeats)) if name in FORMS and not small else math.nan
    tell("limits")
    found = limits.measure(path, rates)
    speedup = attempt("threads", lambda: _speedup(path, rates.threads)) if rates.threads > 1 else math.nan
    return Program(name, row, warm, peer, speedup, found, tuple(problems))


def _against_xla(name: str, small: bool, repeats: int, python: str) -> Row:
    workers = {"heron": Worker("heron"), "xla": Worker("xla", python=python)}
    try:
        with tempfile.TemporaryDirectory() as folder:
            return compare.measure(name, workers, small, repeats, Path(folder), compiles=3)
    finally:
        for worker in workers.values():
            worker.close()


def _warm(path: Path, cache: Path) -> float:
    """Seconds of a compile that finds all code in files."""
    worker = Worker("heron", environment={"HERON_CACHE": "1", "HERON_CACHE_DIR": str(cache)})
    try:
        worker.ask(do="parse", path=str(path))
        worker.ask(do="compile")
        return min(worker.ask(do="compile")["seconds"] for _ in range(2))
    finally:
        worker.close()


def _against_numpy(name: str, path: Path, repeats: int) -> float:
    """heron's time over NumPy's, each the best of some turns."""
    workers = [Worker("heron"), Worker("numpy", name)]
    times: list[list[float]] = [[], []]
    try:
        with tempfile.TemporaryDirectory() as folder:
            inputs = str(Path(folder) / "in.npz")
            values.write(inputs, values.random(parse(path.read_text()), 0), [])
            for worker in workers:
                worker.ask(do="parse", path=str(path))
                worker.ask(do="compile")
                worker.ask(do="bind", path=inputs)
                worker.ask(do="run")
        end = time.perf_counter() + _BUDGET
        for _ in range(2 * repeats):
            for worker, found in zip(workers, times, strict=True):
                time.sleep(_REST)
                found.append(worker.ask(do="run")["seconds"])
            if time.perf_counter() > end:
                break
    finally:
        for worker in workers:
            worker.close()
    return min(times[0]) / min(times[1])


def _speedup(path: Path, threads: int) -> float:
    """The time of one thread over that of `threads`, the best of turns."""
    module = parse(path.read_text(), filename=str(path))
    inputs = values.random(module, 0)
    sides = [heron.compile(module, target="cpu", options=Options(threads=n)) for n in (1, threads)]
    best = [math.inf, math.inf]
    for side in sides:
        side.run(inputs)
    end = time.perf_counter() + _BUDGET / 2
    for n in range(20):
        for k, side in enumerate(sides):
            start = time.perf_counter()
            side.run(inputs)
            best[k] = min(best[k], time.perf_counter() - start)
        if n >= 2 and time.perf_counter() > end:
            break
    return best[0] / best[1]
