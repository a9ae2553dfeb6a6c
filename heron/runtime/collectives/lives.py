"""Whether another process of this machine still runs: one that a signal has killed tells nobody that it ends.

Processes say where they are. Who has heard it keeps a handle of the process, which the system answers for: a process
number alone may have been given to another one since.
"""

from __future__ import annotations

import contextlib
import os
import select
from pathlib import Path


def own_place() -> str:
    """The machine of this process, as it is since it was started, its space of process numbers, and its own number."""
    with contextlib.suppress(OSError):
        machine = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{machine} {os.readlink('/proc/self/ns/pid')} {os.getpid()}"
    return ""


def handle(place: str) -> int | None:
    """A handle of the process at a place, if it is on this machine; the caller owns it."""
    where, _, number = place.rpartition(" ")
    if not where or where != own_place().rpartition(" ")[0]:
        return None
    with contextlib.suppress(OSError):
        return os.pidfd_open(int(number))
    return None


def has_ended(process: int) -> bool:
    """Whether the process of a handle has ended."""
    look = select.poll()
    look.register(process, select.POLLIN)
    return bool(look.poll(0))
