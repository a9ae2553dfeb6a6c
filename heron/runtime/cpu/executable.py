"""A program compiled for this machine's CPU."""

from __future__ import annotations

import ctypes
import time
from typing import Any

import numpy as np

from heron.runtime.cpu.pool import Pool
from heron.runtime.cpu.profile import Profile
from heron.runtime.executable import Executable
from heron.runtime.memory import HostMemory
from heron.runtime.thunks import HostThunk


class HostCalls:
    """Native entry points for `HostThunk`s; an exception inside one is kept and raised after the program returns."""

    def __init__(self) -> None:
        self.keep: list[Any] = []
        self.failure: BaseException | None = None

    def address(self, t: HostThunk) -> int:
        """A C function pointer that calls the thunk's function on views of its buffers."""

        def call(*pointers: int) -> None:
            if self.failure is not None:
                return
            try:
                t.function(*[view(p, *kind) for p, kind in zip(pointers, t.types, strict=True)])
            except BaseException as e:  # must not cross native frames
                self.failure = e

        native = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(t.args))(call)
        self.keep.append(native)
        return ctypes.cast(native, ctypes.c_void_p).value or 0

    def check(self) -> None:
        """Raise what a host call raised, once."""
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure


def view(address: int | None, dtype: np.dtype, dims: tuple[int, ...]) -> np.ndarray:
    """A NumPy view of memory at an address."""
    count = int(np.prod(dims, dtype=np.int64))
    if not count or not address:
        return np.empty(dims, dtype)
    raw: Any = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(address)
    return np.frombuffer(memoryview(raw), dtype=dtype, count=count).reshape(dims)


class CpuExecutable(Executable):
    """Calls the native program with a table of buffer addresses. Safe to call from several threads."""

    def __init__(
        self,
        program: int,
        code: Any,
        hosts: HostCalls,
        memory: HostMemory,
        pool: Pool | None,
        profile: Profile | None,
        **facts: Any,
    ) -> None:
        super().__init__(**facts)
        #: where the time of all calls went, if `Options.profile` asked for it
        self.profile = profile
        self._code = code  # machine code lives as long as this
        self._hosts = hosts
        self._memory = memory
        self._pool = pool  # None: no work is shared
        self._program = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(program)
        self._table = ctypes.c_void_p * max(1, len(memory.allocations))

    def execute(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        if self._pool is not None and not self._pool.started:
            self._pool.start()
        arenas = self._memory.borrow()
        try:
            bases, results = self._memory.bind(arrays, arenas)
            table = self._table(*[b.ctypes.data for b in bases])
            if self.profile is None:
                self._program(ctypes.addressof(table))
            else:
                began = time.perf_counter()
                self._program(ctypes.addressof(table))
                self.profile.seconds += time.perf_counter() - began
        finally:
            self._memory.give_back(arenas)
        if self._hosts.keep:
            self._hosts.check()
        return results
