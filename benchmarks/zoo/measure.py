"""One program on heron and on JAX's CPU, by turns in one process; workers that a slow program cannot hold up."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from benchmarks.zoo.catalogue import Program, named
from benchmarks.zoo.workers import NoAnswer, answers
from heron.codegen.llvm.jit import MADE

SIDES = ("heron", "cpu")


@dataclass
class Row:
    """What was measured of one program; ratios are heron over JAX's CPU."""

    name: str
    theme: str = ""
    #: seconds, by side
    compile: dict[str, float] = field(default_factory=dict)
    run: dict[str, float] = field(default_factory=dict)
    temp_bytes: dict[str, int] = field(default_factory=dict)
    #: the median of the ratios of runs that followed each other
    run_ratio: float = math.nan
    error: float = math.nan
    wrong: bool = False
    refused: str = ""

    def ratio(self, what: str) -> float:
        """heron over JAX's CPU of ``compile``, ``run`` or ``temp_bytes``; NaN where there is none."""
        if what == "run":
            return self.run_ratio
        sides = getattr(self, what)
        if len(sides) < 2:
            return math.nan
        if not sides["cpu"]:
            return math.inf if sides["heron"] else 1.0
        return sides["heron"] / sides["cpu"]


def measure(p: Program, seconds: float) -> Row:
    """Compile and run a program on both sides, for about so many seconds, and compare the values."""
    import jax

    row = Row(p.name, p.theme)
    with jax.enable_x64(p.wide):
        function, arguments = p.make()
        ready: dict[str, Any] = {}
        for side in SIDES:
            placed = jax.device_put(arguments, jax.devices(side)[0])
            lowered = jax.jit(function).lower(*placed)
            MADE.clear()  # what other programs have in common with this one is compiled, too
            begun = time.perf_counter()
            try:
                compiled = lowered.compile()
                row.compile[side] = time.perf_counter() - begun
                ready[side] = compiled, placed, jax.block_until_ready(compiled(*placed))
            except Exception as error:  # a refusal is a result here
                row.refused = f"{side}: {str(error)[:200]}"
                return row
            memory = compiled.memory_analysis()
            row.temp_bytes[side] = 0 if memory is None else memory.temp_size_in_bytes
        _time(row, ready, seconds)
        ours, theirs = [jax.tree.leaves(ready[side][2]) for side in SIDES]
        row.error, row.wrong = _compare(ours, theirs, p.tolerance)
    return row


def _time(row: Row, ready: dict[str, Any], seconds: float) -> None:
    import jax

    times: dict[str, list[float]] = {side: [] for side in SIDES}
    begun = time.perf_counter()
    while len(times["cpu"]) < 7 or time.perf_counter() - begun < seconds and len(times["cpu"]) < 200:
        for side in SIDES if len(times["cpu"]) % 2 else reversed(SIDES):
            compiled, placed, _ = ready[side]
            start = time.perf_counter()
            jax.block_until_ready(compiled(*placed))
            times[side].append(time.perf_counter() - start)
    row.run = {side: statistics.median(times[side]) for side in SIDES}
    row.run_ratio = statistics.median(a / b for a, b in zip(times["heron"], times["cpu"], strict=True))


def _compare(ours: Sequence[Any], theirs: Sequence[Any], tolerance: float) -> tuple[float, bool]:
    """The largest error of an output over the largest magnitude in it, and whether some value is wrong."""
    worst, wrong = 0.0, False
    for a, b in zip(ours, theirs, strict=True):
        whole = np.asarray(b).dtype.kind in "iub"
        x, y = (np.asarray(v).astype(np.complex128) for v in (a, b))
        finite = np.isfinite(y)
        if x.shape != y.shape or not np.array_equal(np.isfinite(x), finite) or not finite.size:
            wrong |= x.shape != y.shape or bool(finite.size)
            continue
        scale = np.abs(y[finite]).max(initial=0.0) + 1e-30
        error = float(np.abs(x[finite] - y[finite]).max(initial=0.0) / scale)
        worst = max(worst, error)
        wrong |= error > (0.0 if whole else tolerance)
    return worst, wrong


def _begin() -> None:
    """Imports and whatever else a process does once."""
    import jax
    import jax.numpy as jnp

    for side in SIDES:
        x = jax.device_put(np.ones((8, 8), np.float32), jax.devices(side)[0])
        jax.block_until_ready(jax.jit(lambda a: jnp.sort(jnp.tanh(a @ a), 0).sum(1))(x))


def _measure(name: str, seconds: float) -> Row:
    return measure(named(name), seconds)


def measure_all(chosen: Sequence[Program], seconds: float, limit: float) -> Iterator[Row]:
    """A row for each program. One that takes longer than ``limit`` seconds is ended, and the next gets a new worker."""
    themes = {p.name: p.theme for p in chosen}
    for name, row in answers(partial(_measure, seconds=seconds), list(themes), limit, _begin):
        yield Row(name, themes[name], refused=row.why) if isinstance(row, NoAnswer) else row
