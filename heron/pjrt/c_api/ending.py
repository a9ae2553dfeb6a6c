"""The end of a process: threads of C++ must not wait for Python's lock when Python ends.

Python up to 3.13 ends such a thread by unwinding its stack, and C++ ends the process where a frame does not allow that.
So from the first of Python's last steps on, entry points return at once to all threads but the one that ends Python.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time

from heron.once import once
from heron.pjrt.c_api import native

#: seconds to wait for threads that are inside: what they wait for may never come
_PATIENCE = 2.0


def watch() -> None:
    """Close the entry points when Python begins to end, after whatever is registered with `atexit` later than this."""
    _words()[0].value = 0
    atexit.unregister(_close)
    atexit.register(_close)


def go_on() -> None:
    """Open the entry points again to a process that ran its `atexit` functions itself, as tests of such functions do.

    Only the thread that ran them knows that Python does not end.
    """
    if _words()[0].value == threading.get_ident():
        watch()


def _close() -> None:
    last, inside = _words()
    last.value = threading.get_ident()
    until = time.monotonic() + _PATIENCE
    while inside.value > 0 and time.monotonic() < until:
        time.sleep(0.0005)  # lets go of the lock


@once
def _words() -> tuple[ctypes.c_int64, ctypes.c_int64]:
    """The thread that may still come in, 0 while all may, and how many threads are inside."""
    last, inside = _word("heron_ending"), _word("heron_counting")

    def forked() -> None:
        """Threads that were inside stayed in the parent."""
        last.value = inside.value = 0

    os.register_at_fork(after_in_child=forked)
    return last, inside


def _word(name: str) -> ctypes.c_int64:
    get = ctypes.CFUNCTYPE(ctypes.c_void_p)(native.entry(name))
    return ctypes.c_int64.from_address(get() or 0)
