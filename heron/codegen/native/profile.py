"""Readings of the processor's clock around the steps of a program, counted by a `runtime.cpu.profile.Profile`."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from heron.runtime.cpu.profile import TABLE

if TYPE_CHECKING:
    from heron.codegen.native.program import ProgramWriter
    from heron.runtime.thunks import Thunk

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


def begin(w: ProgramWriter) -> str:
    """Write a reading of the clock; gives its value's name."""
    has_cycles = platform.machine() == "x86_64"
    if not has_cycles:
        w.declared.function("i32 @clock_gettime(i32, ptr)")
    w.helpers.setdefault("heron_ticks", _CYCLES if has_cycles else _CLOCK)
    w.declared.variable(f"@{TABLE} = external global i64")
    return w.value("call i64 @heron_ticks()")


def end(w: ProgramWriter, begun: str, thunk: Thunk | None) -> None:
    """Write that a step which began at a reading is done; None: the program."""
    assert w.profile is not None
    place = w.profile.place(thunk)
    spent = w.value(f"sub i64 {w.value('call i64 @heron_ticks()')}, {begun}")
    for n, more in ((place, "1"), (place + 1, spent)):
        at = w.value(f"getelementptr i64, ptr @{TABLE}, i64 {n}")
        now = w.value(f"load i64, ptr {at}")
        w.line(f"store i64 {w.value(f'add i64 {now}, {more}')}, ptr {at}")
