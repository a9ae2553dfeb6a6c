"""The instruction that a compile is at, read from the local variables of its functions."""

from __future__ import annotations

import sys
from collections import Counter, deque
from threading import get_ident
from types import FrameType

from heron.hlo.ir.instruction import Instruction

#: names that a place is described by: a pass may be at an instruction that the program did not have at first
_MOST = 64
#: places that are told
_PLACES = 16


class Places:
    """The places of the threads of the process, looked at now and then. The caller's own thread does not count."""

    def __init__(self) -> None:
        self._times: Counter[str] = Counter()
        self._around: dict[str, tuple[str, ...]] = {}

    def look(self) -> None:
        """Note the instruction that each thread is at."""
        frames = sys._current_frames()
        frames.pop(get_ident(), None)
        for frame in frames.values():
            try:
                found = place(frame)
            except (AttributeError, RuntimeError):  # the thread is making, or changing, the instruction that was read
                continue
            if found:
                self._times[found[0]] += 1
                self._around[found[0]] = found

    @property
    def seen(self) -> tuple[tuple[str, ...], ...]:
        """The places, those seen most often first: names, the nearest first."""
        return tuple(self._around[name] for name, _ in self._times.most_common(_PLACES))


def place(frame: FrameType | None) -> tuple[str, ...]:
    """The instruction that the innermost function with one is at, and those around it: names, the nearest first.

    A function is at the last instruction among its local variables.
    """
    while frame is not None:
        for value in reversed(list(frame.f_locals.values())):
            if isinstance(value, Instruction) and getattr(value, "parent", None) is not None:
                return tuple(i.name for i in _around(value))
        frame = frame.f_back
    return ()


def _around(i: Instruction) -> list[Instruction]:
    seen, waiting = {i: None}, deque([i])
    while waiting and len(seen) < _MOST:
        now = waiting.popleft()
        seen.update(dict.fromkeys(near := [n for n in (*now.operands, *now.users) if n not in seen]))
        waiting += near
    return list(seen)[:_MOST]
