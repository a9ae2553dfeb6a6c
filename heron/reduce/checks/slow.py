"""``--slow-compile N``: the compile takes more than N seconds."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import field
from functools import cache

import numpy as np

from heron import targets
from heron.backends.watchdog import patient
from heron.compiling import compile, compile_module
from heron.hlo.ir.module import Module
from heron.options import Options
from heron.records import dataclass
from heron.reduce.checks import running
from heron.reduce.checks.at_work import Places
from heron.reduce.checks.crashes import failure
from heron.reduce.checks.finding import FINE, Check, Finding
from heron.trace import Trace

_TINY = "HloModule tiny\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] negate(x)\n}\n"


@cache
def _warm(target: str) -> None:
    """Compile something else first: the first compile of a process loads the compiler."""
    compile(_TINY, running.target_name(target))


#: a smaller program must take that many times the seconds: else the smallest takes just as many, and now and then less
_CLEARLY = 1.1
#: seconds between looks at the least
_TICK = 0.01
#: looks at where the compile is, on the way to the limit
_LOOKS = 20


class _TooLong(Exception):
    """The compile has taken as long as it needs to."""


class _Meter:
    """The seconds of a compile from now on, of the clock and of the processors; and where it was seen to be."""

    def __init__(self, limit: float) -> None:
        self._limit, self.places, self.trace = limit, Places(), Trace()
        self.steps: Counter[str] = Counter()
        self._wall, self._busy = time.perf_counter(), time.process_time()

    @property
    def taken(self) -> float:
        """The seconds up to now, the limit at most."""
        return min(time.perf_counter() - self._wall, time.process_time() - self._busy, self._limit)

    def left(self) -> float:
        """Seconds to wait before the next look; none when the limit is passed."""
        self.places.look()
        self.steps[self.trace.at] += 1
        left = self._limit - self.taken
        return max(min(left, self._limit / _LOOKS), _TICK) if left > 0 else 0.0


@dataclass(frozen=True)
class SlowCompile(Check):
    """A compile for ``target`` takes more than that many seconds, of the clock and of the processors.

    Time that the machine spends on other programs does not count, nor do the seconds of several processors twice. A
    compile that has taken long enough is not waited for.
    """

    seconds: float
    target: str = "cpu"
    settings: Options = field(default_factory=Options)
    kinds = ("slow",)
    reads_inputs = False

    def look(self, module: Module, inputs: Sequence[np.ndarray]) -> Finding:
        try:
            meter = self._compiled(module)
        except Exception as error:
            return failure(error)
        if meter.taken <= self.seconds:
            return Finding(FINE)
        text = f"the compile for {self.target} takes more than {self.seconds:g} s"
        return Finding("slow", amount=meter.taken, text=text, near=meter.places.seen)

    def _compiled(self, module: Module) -> _Meter:
        """The record of a compile up to the limit. Raises what the compile raises."""
        _warm(self.target)
        machine = targets.get(running.target_name(self.target))
        options = self.settings.replace(cache=False, compile_timeout=0)
        meter = _Meter(self.seconds * _CLEARLY)
        with suppress(_TooLong):
            patient(lambda: compile_module(module, machine, options, meter.trace), meter.left, _TooLong)
        return meter

    def bar(self, first: Finding) -> float:
        return min(first.amount, self.seconds * _CLEARLY)

    def options(self) -> str:
        return f"--slow-compile {self.seconds:g} --target {self.target}"

    def blame(self, module: Module, inputs: Sequence[np.ndarray]) -> str:
        """The pass or the kernel, with its stage, at which the compile is seen more often than not."""
        steps = self._compiled(module).steps
        return next((step for step, times in steps.items() if times > steps.total() / 2), "")
