"""The base of all bindings: functions, plans by descriptor, and copies on the stream."""

from __future__ import annotations

import ctypes
from abc import abstractmethod
from ctypes import c_size_t, c_uint64, c_void_p
from threading import Lock
from typing import Generic, TypeVar

from heron.errors import HeronError
from heron.hlo.ir.types import C64, C128, F32, F64, ElementType
from heron.runtime.cuda.libraries.base import Library, Workspace
from heron.runtime.cuda.libraries.native import Functions, Native
from heron.runtime.library_call import Array, Descriptor

_P = TypeVar("_P")

#: the letter of a type in names of BLAS and LAPACK routines
LETTERS: dict[ElementType, str] = {F32: "S", F64: "D", C64: "C", C128: "Z"}


class Bound(Library, Generic[_P]):
    """A library whose calls have plans of type `_P`, made once for each descriptor.

    ``functions`` and ``driver`` stand in for the library and the CUDA driver; loaded when not given.
    """

    def __init__(
        self, workspace: Workspace | None = None, functions: Functions | None = None, driver: Functions | None = None
    ) -> None:
        super().__init__(workspace)
        self.functions = functions or Native(self.name)
        self._driver = driver
        self._plans: dict[Descriptor, _P] = {}
        self._lock = Lock()

    def plan(self, descriptor: Descriptor) -> _P:
        """The plan of a descriptor. Raises RUN091 when the library does not do it."""
        with self._lock:
            found = self._plans.get(descriptor)
            if found is None:
                found = self._plans[descriptor] = self.make(descriptor)
            return found

    @abstractmethod
    def make(self, descriptor: Descriptor) -> _P:
        """A new plan."""

    def copy(self, stream: int, target: int, origin: int, size: int) -> None:
        """Enqueue a copy on the device, unless both are one place."""
        if target == origin or not size:
            return
        if self._driver is None:
            self._driver = Native("cuda")
        self._driver.call("cuMemcpyDtoDAsync_v2", c_uint64(target), c_uint64(origin), c_size_t(size), c_void_p(stream))

    def refuse(self, descriptor: Descriptor, why: str) -> HeronError:
        """The error for a call that the library does not do."""
        return HeronError("RUN091", f"{self.name} does not do {descriptor}", why=why)


def size_of(array: Array) -> int:
    """Bytes."""
    count = 1
    for d in array.dims:
        count *= d
    return count * array.element_type.bits // 8


def ints(values: tuple[int, ...]) -> ctypes.Array[ctypes.c_int]:
    """A C array of int."""
    return (ctypes.c_int * len(values))(*values)
