"""The time of a CPU program's steps: each reads the processor's clock before and after, and adds the difference.

`codegen/native/profile.py` writes the readings, of about 10 ns each, into programs compiled with ``Options.profile``.
Calls of one program by several threads at once may lose counts.
"""

from __future__ import annotations

import ctypes

from heron.records import dataclass
from heron.runtime.thunks import ConditionalThunk, Thunk, WhileThunk

#: the counters, as the program's text names them
TABLE = "heron_profile"


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

    def place(self, thunk: Thunk | None) -> int:
        """The number of the first counter of the next step, or of the whole program (None)."""
        if thunk is None:
            return 0
        self._thunks.append(thunk)
        return 2 * len(self._thunks)

    def address(self) -> int:
        """The address of the counters, once all steps are written."""
        self._counts = (ctypes.c_int64 * (2 * len(self._thunks) + 2))()
        return ctypes.addressof(self._counts)

    def reset(self) -> None:
        """Forget what was counted."""
        ctypes.memset(self._counts, 0, ctypes.sizeof(self._counts))
        self.seconds = 0.0

    @property
    def calls(self) -> int:
        """The number of runs of the program."""
        return self._counts[0]

    def steps(self) -> list[StepTime]:
        """All steps in program order; those of loops' bodies are there once, with all their runs."""
        tick = self.seconds / self._counts[1] if self._counts[1] else 0.0
        counts = iter(self._counts[2:])
        return [StepTime(t, runs, ticks * tick) for t, runs, ticks in zip(self._thunks, counts, counts, strict=True)]


def is_step(t: Thunk) -> bool:
    """Whether a thunk does something itself, beside saying which others run."""
    return not isinstance(t, (WhileThunk, ConditionalThunk))
