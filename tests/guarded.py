"""CPU programs, of one device or several, run with memory around every buffer that must not be touched.

Arguments, constants, outputs and every buffer in scratch end at a page that no one may read or write, and no two of
them ever share memory. A program that goes beyond the end of a buffer, or writes what is only to be read, ends its
process; so this belongs into a child process. What lies before a buffer on its first page is compared after the run.
Memory is filled with a pattern first, and a second run with another pattern must give the same bits: results do not
depend on what was never written.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import mmap
from collections.abc import Iterator, Sequence
from unittest.mock import patch

import numpy as np

import heron
from heron.buffers.assignment import BufferAssignment
from heron.buffers.heap import Block, Shelf
from heron.runtime.cpu.executable import CpuExecutable
from heron.runtime.executable import Signature
from heron.runtime.memory import ARGUMENT_ALIGNMENT, HostMemory

PAGE = mmap.PAGESIZE
#: what memory holds before a run; the second is NaN in all types of floats
PATTERNS = (0xA5, 0xFF)
_NOTHING, _READ = 0, 1


def run(module: heron.Module, inputs: Sequence[np.ndarray], donate: bool = False) -> list[np.ndarray]:
    """The outputs on the CPU. Raises AssertionError where memory beside a buffer was written, or runs differ."""
    found: list[list[np.ndarray]] = []
    with _guards() as rooms:
        executable = heron.compile(module, "cpu")
        for pattern in PATTERNS:
            rooms.pattern = pattern
            if isinstance(executable, CpuExecutable):
                executable._used = False  # the long way, on which memory is bound in Python
            given = [np.array(a) for a in inputs]
            found.append([np.array(o) for o in executable.run(given, donate=donate)])
            rooms.check()
    for n, (one, two) in enumerate(zip(*found, strict=True)):
        assert one.tobytes() == two.tobytes(), f"output {n} depends on memory that was never written"
    return found[0]


@contextlib.contextmanager
def _guards() -> Iterator[Rooms]:
    rooms = Rooms()

    class Memory(_Memory):
        home = rooms

    with (
        patch("heron.buffers.assign.pack", _apart),
        patch("heron.runtime.cpu.executable.HostMemory", Memory),
        patch("heron.runtime.cpu.devices.HostMemory", Memory),
        patch("heron.runtime.memory.constant_bytes", rooms.constant),
        patch("heron.runtime.array_pool.empty", rooms.empty),
        patch("heron.runtime.array_pool.copy", rooms.copy),
    ):
        yield rooms


class Rooms:
    """Memory between pages that must not be touched."""

    def __init__(self) -> None:
        self.pattern = PATTERNS[0]
        #: memory, the places in it that must keep a pattern, and the pattern
        self._beside: list[tuple[np.ndarray, np.ndarray, int]] = []

    def check(self) -> None:
        """Raise AssertionError where memory beside a buffer has changed, and forget the buffers."""
        for memory, places, pattern in self._beside:
            written = places[memory[places] != pattern]
            assert not written.size, f"{written.size} bytes beside buffers were written"
        self._beside.clear()

    def arena(self, size: int, used: Sequence[tuple[int, int]]) -> np.ndarray:
        """Memory of which only the bytes of `used` (the first, that behind the last) may be touched."""
        pages = max(1, -(-size // PAGE)) * PAGE
        region = mmap.mmap(-1, pages + 2 * PAGE)
        memory = np.frombuffer(region, np.uint8)[PAGE : PAGE + pages]
        memory[:] = self.pattern
        inside = np.zeros(pages, bool)
        for first, behind in used:
            inside[first:behind] = True
        touched = inside.reshape(-1, PAGE).any(1)
        self._beside.append((memory, np.flatnonzero(np.repeat(touched, PAGE) & ~inside), self.pattern))
        start = memory.ctypes.data
        for page in (-1, *np.flatnonzero(~touched), pages // PAGE):
            _protect(start + int(page) * PAGE, PAGE, _NOTHING)
        return memory[:size]

    def room(self, size: int) -> np.ndarray:
        """As many bytes, behind which a page begins that must not be touched."""
        start = (-size % PAGE) // ARGUMENT_ALIGNMENT * ARGUMENT_ALIGNMENT
        return self.arena(start + size, [(start, start + size)])[start:]

    def filled(self, array: np.ndarray, kept: bool) -> np.ndarray:
        """A copy; where it is `kept`, no one may write it."""
        found = self.copy(np.ascontiguousarray(array).reshape(np.shape(array)))
        if kept and found.nbytes:
            first = found.ctypes.data // PAGE * PAGE
            _protect(first, -(-(found.ctypes.data + found.nbytes - first) // PAGE) * PAGE, _READ)
        return found

    def empty(self, dims: tuple[int, ...], dtype: np.dtype, what: str = "") -> np.ndarray:
        """In place of `array_pool.empty`."""
        return self.room(math.prod(dims) * dtype.itemsize).view(dtype).reshape(dims)

    def copy(self, array: np.ndarray, what: str = "") -> np.ndarray:
        """In place of `array_pool.copy`."""
        found = self.empty(array.shape, array.dtype)
        found[...] = array
        return found

    def constant(self, value: np.ndarray, size: int) -> np.ndarray:
        """In place of `memory.constant_bytes`."""
        raw = np.frombuffer(np.ascontiguousarray(value).tobytes(), np.uint8)
        return self.filled(np.concatenate([raw, np.zeros(size - raw.size, np.uint8)]), kept=True)


class _Memory(HostMemory):
    """Buffers of a program in rooms of their own."""

    home: Rooms

    def __init__(self, assignment: BufferAssignment, signature: Signature) -> None:
        super().__init__(assignment, signature)
        self._used: dict[int, list[tuple[int, int]]] = {}
        for s in (*assignment.slices.values(), *assignment.scratch.values()):
            self._used.setdefault(s.allocation, []).append((s.offset, s.offset + s.size))

    def bind(
        self, arguments: list[np.ndarray], arenas: dict[int, np.ndarray], donate: bool = False
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        written = {self.places[a.parameter, a.index] for a in self.allocations if a.number in self.overwritten}
        given = [self.home.filled(x, kept=not (donate and n in written)) for n, x in enumerate(arguments)]
        return super().bind(given, arenas, donate)

    def borrow(self) -> dict[int, np.ndarray]:
        temps = [a for a in self.allocations if a.kind == "temp"]
        return {a.number: self.home.arena(a.size, self._used.get(a.number, ())) for a in temps}

    def give_back(self, arenas: dict[int, np.ndarray]) -> None:
        """Each call has its own."""


def _apart(blocks: Sequence[Block], shelves: Sequence[Shelf] = ()) -> int:
    """In place of `heap.pack`: no two blocks share memory, and each ends where a page does that nothing lies on."""
    at = 0
    for block in blocks:
        pages = -(-block.size // PAGE) * PAGE
        block.shelf, block.offset = -1, at + pages - block.size
        at += pages + PAGE
    return at


def _protect(address: int, size: int, access: int) -> None:
    result = _libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), access)
    assert result == 0, "mprotect failed"


_libc = ctypes.CDLL(None)
