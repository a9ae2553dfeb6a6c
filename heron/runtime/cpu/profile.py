"""Where a CPU program's time goes: its steps read the processor's clock before and after, and add up the difference.

Only programs compiled with ``Options.profile`` do. A reading takes about 10 ns. Calls of one program by several threads
at once may lose counts.
"""

from __future__ import annotations

import ctypes
import platform
from dataclasses import dataclass
from typing import TYPE_CHECKING

from heron.runtime.thunks import ConditionalThunk, Thunk, WhileThunk

if TYPE_CHECKING:
    from heron.runtime.cpu.program import ProgramWriter

#: the counters, as the program's text names them
TABLE = "heron_profile"

_CYCLES = """define internal i64 @heron_ticks() alwaysinline nounwind {
  %now = call i64 @llvm.readcyclecounter()
  ret i64 %now
}"""
# other processors keep their cycles to themselves: POSIX, CLOCK_MONOTONIC in nanoseconds
_CLOCK = """define internal i64 @heron_ticks() nounwind {
  %time = alloca [2 x i64]
  call i32 @clock_gettime(i32 1, ptr %time)
  %part = getelementptr i64, ptr %time, i64 1
  %seconds = load i64, ptr %time
  %rest = load i64, ptr %part
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  ret i64 %now
}"""


@dataclass(frozen=True, slots=True)
class StepTime:
    """A step of the program, how often it ran, and how long that took in all, in seconds."""

    thunk: Thunk
    runs: int
    seconds: float


class Profile:
    """Counters of one program: two for each step, its runs and their ticks; the first pair is of the whole program."""

    def __init__(self) -> None:
        self._thunks: list[Thunk] = []
        self._counts = (ctypes.c_int64 * 2)()
        #: seconds that calls of the program took, as their caller saw it; tells how long a tick is
        self.seconds = 0.0

    # -- while the program is written ----------------------------------------------------------------------------------
    def begin(self, writer: ProgramWriter) -> str:
        """Write a reading of the clock; gives its value's name."""
        has_cycles = platform.machine() == "x86_64"
        if not has_cycles:
            writer.declared.function("i32 @clock_gettime(i32, ptr)")
        writer.helpers.setdefault("heron_ticks", _CYCLES if has_cycles else _CLOCK)
        writer.declared.variable(f"@{TABLE} = external global i64")
        return writer.value("call i64 @heron_ticks()")

    def end(self, writer: ProgramWriter, begun: str, thunk: Thunk | None) -> None:
        """Write that a step which began at a reading is done; None: the program."""
        if thunk is not None:
            self._thunks.append(thunk)
        place = 2 * len(self._thunks) if thunk is not None else 0
        spent = writer.value(f"sub i64 {writer.value('call i64 @heron_ticks()')}, {begun}")
        for n, more in ((place, "1"), (place + 1, spent)):
            at = writer.value(f"getelementptr i64, ptr @{TABLE}, i64 {n}")
            now = writer.value(f"load i64, ptr {at}")
            writer.line(f"store i64 {writer.value(f'add i64 {now}, {more}')}, ptr {at}")

    def address(self) -> int:
        """Where the counters are, once all steps are written."""
        self._counts = (ctypes.c_int64 * (2 * len(self._thunks) + 2))()
        return ctypes.addressof(self._counts)

    # -- while it runs -------------------------------------------------------------------------------------------------
    def reset(self) -> None:
        """Forget what was counted."""
        ctypes.memset(self._counts, 0, ctypes.sizeof(self._counts))
        self.seconds = 0.0

    @property
    def calls(self) -> int:
        """How often the program ran."""
        return self._counts[0]

    def steps(self) -> list[StepTime]:
        """All steps in program order; those of loops' bodies are there once, with all their runs."""
        tick = self.seconds / self._counts[1] if self._counts[1] else 0.0
        counts = iter(self._counts[2:])
        return [StepTime(t, runs, ticks * tick) for t, runs, ticks in zip(self._thunks, counts, counts, strict=True)]


def is_step(t: Thunk) -> bool:
    """Whether a thunk does something itself, beside saying which others run."""
    return not isinstance(t, (WhileThunk, ConditionalThunk))
