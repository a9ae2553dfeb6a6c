"""``--slow-compile N``: the compile takes more than N seconds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from heron.hlo.ir.module import Module
from heron.options import Options
from heron.reduce.checks import running
from heron.reduce.checks.finding import FINE, Check, Finding

_TINY = "HloModule tiny\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] negate(x)\n}\n"


@cache
def _warm(target: str) -> None:
    """Compile something else first: the first compile of a process loads the compiler."""
    from heron.compiling import compile

    compile(_TINY, running.target_name(target))


@dataclass(frozen=True)
class SlowCompile(Check):
    """A compile for ``target`` takes more than that many seconds, of the clock and of the processors.

    Time that the machine spends on other programs does not count, nor do the seconds of several processors twice.
    """

    seconds: float
    target: str = "cpu"
    settings: Options = field(default_factory=Options)
    kinds = ("slow",)

    def look(self, module: Module, inputs: Sequence[np.ndarray]) -> Finding:
        from heron.compiling import compile

        _warm(self.target)
        wall, busy = time.perf_counter(), time.process_time()
        try:
            compile(module, running.target_name(self.target), self.settings.replace(cache=False))
        except Exception as error:
            from heron.reduce.checks.crashes import failure

            return failure(error)
        taken = min(time.perf_counter() - wall, time.process_time() - busy)
        if taken <= self.seconds:
            return Finding(FINE)
        return Finding("slow", amount=taken, text=f"the compile for {self.target} takes {taken:.1f} s")

    def bar(self, first: Finding) -> float:
        return self.seconds

    def options(self) -> str:
        return f"--slow-compile {self.seconds:g} --target {self.target}"

    def blame(self, module: Module, inputs: Sequence[np.ndarray]) -> str:
        """The pass, or else the stage, that takes most of the time."""
        from heron import targets
        from heron.compiling import compile_module
        from heron.trace import Trace

        trace = Trace()
        machine = targets.get(running.target_name(self.target))
        compile_module(module, machine, self.settings.replace(cache=False), trace)
        passes = sorted(trace.passes, key=lambda p: p.seconds)
        if passes and passes[-1].seconds > self.seconds / 2:
            return f"{passes[-1].name}, {passes[-1].seconds:.1f} s"
        return ""
