"""A limit on how long a piece of work may take, with an error that says what it was at.

The work is done by a thread of its own while the caller waits, so that the caller gets the error, and Ctrl-C, even
while LLVM runs, which nothing can interrupt. The thread is told to stop; it does when it is next in Python.
"""

from __future__ import annotations

import contextvars
import ctypes
import threading
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

from heron.errors import HeronError

T = TypeVar("T")

#: threads whose work nobody waits for any more
_ABANDONED: list[threading.Thread] = []


class Abandoned(BaseException):
    """Raised in a thread whose work nobody waits for any more."""


def watched(work: Callable[[], T], seconds: float, late: Callable[[], HeronError]) -> T:
    """The result of `work`; `late()` is raised if it takes longer than that many seconds (0: no limit)."""
    if not seconds:
        return work()
    end = time.monotonic() + seconds
    return patient(work, lambda: end - time.monotonic(), late)


def patient(work: Callable[[], T], left: Callable[[], float], late: Callable[[], Exception]) -> T:
    """The result of `work`; `late()` is raised once `left()` seconds are none, which is asked again when they are over.

    Raises what `work` raises.
    """
    results: list[T] = []
    errors: list[BaseException] = []
    context = contextvars.copy_context()

    def run() -> None:
        try:
            results.append(context.run(work))
        except BaseException as error:  # the caller's, whatever it is
            errors.append(error)

    thread = threading.Thread(target=run, name="heron-watched", daemon=True)
    thread.start()
    try:
        while thread.is_alive() and (seconds := left()) > 0:
            thread.join(seconds)
    except BaseException:
        _abandon(thread)
        raise
    if thread.is_alive():
        error = late()
        _abandon(thread)
        raise error
    if errors:
        raise errors[0]
    return results[0]


def is_busy() -> bool:
    """Whether an abandoned thread is still at it: a process that ends must not take down what native code uses."""
    return any(t.is_alive() for t in _ABANDONED)


def leave(threads: Iterable[threading.Thread]) -> None:
    """Wait no more for what these threads, which are daemons, are at."""
    _ABANDONED[:] = [t for t in (*_ABANDONED, *threads) if t.is_alive()]


def _abandon(thread: threading.Thread) -> None:
    leave([thread])
    if thread.ident is not None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(Abandoned))
