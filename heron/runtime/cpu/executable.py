"""A program compiled for this machine's CPU."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence as Seq
from math import prod
from typing import Any

import numpy as np

from heron.records import dataclass
from heron.runtime.cpu.call import Call, Entry, entry, load, quick_call
from heron.runtime.cpu.pool import Pool
from heron.runtime.cpu.profile import Profile
from heron.runtime.executable import Executable, ProgramInfo, Signature, array_facts
from heron.runtime.memory import HostMemory
from heron.runtime.object_code import Object
from heron.runtime.thunks import HostThunk


class HostCalls:
    """Native entry points for `HostThunk`s; an exception inside one is kept and raised after the program returns."""

    def __init__(self) -> None:
        self.keep: list[Any] = []
        self.failure: BaseException | None = None

    def address(self, t: HostThunk) -> int:
        """A C function pointer that calls the thunk's function on views of its buffers."""

        views = [View.of(dtype, dims) for dtype, dims in t.types]
        function = t.function

        def call(*pointers: int) -> None:
            if self.failure is not None:
                return
            try:
                function(*[view.at(p) for p, view in zip(pointers, views, strict=True)])
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


@dataclass(frozen=True, slots=True)
class View:
    """A view of memory as an array; ``raw``: the memory itself as a ctypes type, None for an empty array."""

    dtype: np.dtype
    dims: tuple[int, ...]
    raw: Any

    @staticmethod
    def of(dtype: np.dtype, dims: tuple[int, ...]) -> View:
        size = prod(dims) * dtype.itemsize
        return View(dtype, dims, ctypes.c_char * size if size else None)

    def at(self, address: int | None) -> np.ndarray:
        """The array at an address."""
        if self.raw is None or not address:
            return np.empty(self.dims, self.dtype)
        return np.ndarray(self.dims, self.dtype, self.raw.from_address(address))


class CpuExecutable(Executable):
    """Calls the native program with a table of buffer addresses. Safe to call from several threads.

    The second call makes a quick way in (`call.py`), which takes exact arrays as they are. Arguments that it refuses go
    the long way: checked and made to fit, then tried again, or bound here.
    """

    def __init__(
        self,
        info: ProgramInfo,
        program: int,
        objects: tuple[Object, ...],
        hosts: HostCalls,
        pool: Pool | None,
        profile: Profile | None = None,
    ) -> None:
        super().__init__(info)
        load()
        #: where the time of all calls went, if `Options.profile` asked for it
        self.profile = profile
        #: its object code, that of the program last; machine code lives as long as they do
        self.objects = objects
        #: whether threads share its work
        self.shares = pool is not None
        self._hosts = hosts
        self._memory = HostMemory(info.assignment, info.signature)
        self._pool = pool  # None: no work is shared
        self._address = program
        self._program = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(program)
        self._table = ctypes.c_void_p * max(1, len(self._memory.allocations))
        plain = type(self.signature) is Signature and not self._turned_arguments and not self._turned_outputs
        result = self.signature.result
        self._takes_plain = plain
        self._gives_one = plain and result.is_array
        self._gives_flat = plain and bool(result.tuple_shapes) and all(s.is_array for s in result.tuple_shapes or ())
        self._used = False
        self._ways: dict[bool, Call | None] = {}  # by whether arguments are donated
        self._quick: Call = _refuse  # for plain arguments
        self._quick_donating: Call = _refuse

    def __call__(self, *arrays: Any) -> Any:
        pool = self._pool
        if pool is not None and not pool.started:
            pool.start()
        found = self._quick(*arrays)
        if found is NotImplemented:
            return self.signature.pack(super().run(arrays))
        if self._hosts.keep:
            self._hosts.check()
        if self._gives_one:
            return found[0]
        return found if self._gives_flat else self.signature.pack(found)

    def run(self, arrays: Seq[Any], *, donate: bool = False) -> list[np.ndarray]:
        if self._pool is not None and not self._pool.started:
            self._pool.start()
        found = (self._quick_donating if donate else self._quick)(*arrays)
        if found is NotImplemented:
            return super().run(arrays, donate=donate)
        if self._hosts.keep:
            self._hosts.check()
        return list(found)

    def native_entry(self) -> Entry | None:
        """The quick way for native code, from the third call on; None where a call has work for Python.

        Threads that share work are not started by it: without them the caller does all of it.
        """
        return None if self._hosts.keep else entry(self._quick)

    def execute(self, arrays: list[np.ndarray], donate: bool = False) -> list[np.ndarray]:
        if self._pool is not None and not self._pool.started:
            self._pool.start()
        way = self._way(donate)
        found = NotImplemented if way is None else way(*arrays)
        if donate and found is NotImplemented:
            self._memory.need_apart(arrays)
        results = self._bound(arrays, donate) if found is NotImplemented else list(found)
        if self._hosts.keep:
            self._hosts.check()
        return results

    def _bound(self, arrays: list[np.ndarray], donate: bool) -> list[np.ndarray]:
        """The long way: buffers bound in Python."""
        arenas = self._memory.borrow()
        try:
            bases, results = self._memory.bind(arrays, arenas, donate)
            table = self._table(*[b.ctypes.data for b in bases])
            if self.profile is None:
                self._program(ctypes.addressof(table))
            else:
                began = time.perf_counter()
                self._program(ctypes.addressof(table))
                self.profile.seconds += time.perf_counter() - began
        finally:
            self._memory.give_back(arenas)
        return results

    def _way(self, donate: bool) -> Call | None:
        """The quick way in, made when a program is called for the second time."""
        if not self._used or self.profile is not None:  # a profile wants the time of the program alone
            self._used = True
            return None
        if donate not in self._ways:
            leaves = [s for p in self.signature.parameters for _, s in p.leaves() if s.is_array]
            way = quick_call(self._address, self._memory, array_facts(leaves), donate)
            self._ways[donate] = way
            if way is not None and self._takes_plain and donate:
                self._quick_donating = way
            elif way is not None and self._takes_plain:
                self._quick = way
        return self._ways[donate]


def _refuse(*_: object) -> Any:
    return NotImplemented
