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


@once
def watch() -> None:
    """Close the entry points when Python begins to end, after whatever is registered with `atexit` later than this."""
    last, inside = _word("heron_ending"), _word("heron_counting")

    def close() -> None:
        last.value = threading.get_ident()
        until = time.monotonic() + _PATIENCE
        while inside.value > 0 and time.monotonic() < until:
            time.sleep(0.0005)  # lets go of the lock

    def forked() -> None:
        """Threads that were inside stayed in the parent."""
        last.value = inside.value = 0

    atexit.register(close)
    os.register_at_fork(after_in_child=forked)


def _word(name: str) -> ctypes.c_int64:
    get = ctypes.CFUNCTYPE(ctypes.c_void_p)(native.entry(name))
    return ctypes.c_int64.from_address(get() or 0)
