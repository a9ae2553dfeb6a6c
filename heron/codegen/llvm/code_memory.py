"""Compiled code that a process has made before: programs that JAX compiles one after the other have kernels in common.

Half of the modules of JAX's own tests are texts that LLVM has had a moment ago. Their code is the same to the bit, and
is linked anew for each program.
"""

from __future__ import annotations

from collections.abc import Hashable
from threading import Lock

#: bytes that all of it may take; of a small program it is some KiB
LIMIT = 1 << 23


class CodeMemory:
    """Code by what it was made from; beyond `limit` bytes, what was not asked for longest goes."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self._code: dict[Hashable, bytes] = {}  # asked for last comes last
        self._bytes = 0
        self._lock = Lock()

    def get(self, key: Hashable) -> bytes | None:
        """The code, or None."""
        with self._lock:
            code = self._code.pop(key, None)
            if code is not None:
                self._code[key] = code
            return code

    def put(self, key: Hashable, code: bytes) -> None:
        """Keep code."""
        with self._lock:
            self._bytes += len(code) - len(self._code.pop(key, b""))
            self._code[key] = code
            while self._bytes > self.limit:
                self._bytes -= len(self._code.pop(next(iter(self._code))))

    def clear(self) -> None:
        """Forget all of it: whatever is compiled next is compiled as in a new process."""
        with self._lock:
            self._code.clear()
            self._bytes = 0
