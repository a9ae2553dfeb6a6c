"""Host memory for allocations: where each buffer of a call lives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from heron.errors import HeronError
from heron.runtime import array_pool

if TYPE_CHECKING:
    from heron.buffers.assignment import BufferAssignment
    from heron.runtime.executable import Signature

ALIGNMENT = 64
#: arguments begin at multiples of this, for kernels load several elements at once; others are copied
ARGUMENT_ALIGNMENT = 16


def aligned(size: int, what: str = "a buffer") -> np.ndarray:
    """An uninitialised byte array at a 64-byte boundary. Raises RUN010, which names it, when memory is short."""
    try:
        raw = np.empty(size + ALIGNMENT, np.uint8)
    except (MemoryError, ValueError) as e:  # ValueError: more bytes than addresses
        raise array_pool.no_memory(what, size) from e
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size]


def is_readable(array: np.ndarray) -> bool:
    """Whether programs can read an array where it lies."""
    flags = array.flags
    return flags.c_contiguous and flags.aligned and array.ctypes.data % ARGUMENT_ALIGNMENT == 0


def constant_bytes(value: np.ndarray, size: int) -> np.ndarray:
    """A constant's bytes in memory of its own."""
    buffer = aligned(size, "a constant")
    value = np.ascontiguousarray(value)
    buffer[: value.nbytes] = value.reshape(-1).view(np.uint8)
    return buffer


class HostMemory:
    """The buffers of one program on the host: constants made once, temp arenas kept for the next call.

    `bind` gives the base array of every allocation of a call, and the output arrays among them. Safe to use from
    several threads: an arena belongs to one call at a time.
    """

    def __init__(self, assignment: BufferAssignment, signature: Signature) -> None:
        self.allocations = assignment.allocations
        self.output_slices = assignment.outputs
        #: dtypes and dimensions of the flat outputs
        self.outputs = signature.output_arrays
        self.constants: dict[int, np.ndarray] = {}
        for a in self.allocations:
            if a.kind == "constant" and a.literal is not None:
                self.constants[a.number] = constant_bytes(a.literal.array, a.size)
        #: the flat argument that is a part of a parameter
        self.places = {key: n for n, key in enumerate(signature.arguments)}
        #: allocations of parameters the program writes into
        self.overwritten = {a.number for a in self.allocations if a.kind == "parameter" and not a.is_read_only}
        self._arenas: list[dict[int, np.ndarray]] = []

    def borrow(self) -> dict[int, np.ndarray]:
        """Temp arenas for one call; hand them back with `give_back`."""
        if self._arenas:
            return self._arenas.pop()
        return {a.number: aligned(a.size, f"scratch ({a.name})") for a in self.allocations if a.kind == "temp"}

    def give_back(self, arenas: dict[int, np.ndarray]) -> None:
        self._arenas.append(arenas)

    def need_apart(self, arguments: Sequence[np.ndarray]) -> None:
        """Raises RUN005 when arguments to be overwritten share memory with others."""
        given = {self.places[a.parameter, a.index] for a in self.allocations if a.number in self.overwritten}
        ranges = sorted((a.ctypes.data, a.ctypes.data + a.nbytes, n) for n, a in enumerate(arguments) if a.nbytes)
        reach = donated = (0, -1)  # how far the arrays so far go, and those of them that are given away
        for start, end, n in ranges:
            other = reach if n in given else donated
            if start < other[0]:
                raise HeronError(
                    "RUN005",
                    f"arguments {min(n, other[1])} and {max(n, other[1])} share memory, and one of them is donated",
                    why="the program overwrites donated arguments",
                    hint="pass a copy, or call with donate=False",
                )
            reach = max(reach, (end, n))
            if n in given:
                donated = max(donated, (end, n))

    def bind(
        self, arguments: list[np.ndarray], arenas: dict[int, np.ndarray], donate: bool = False
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Base arrays by allocation number, and the output arrays in order: fresh, or an aliased argument's copy.

        ``donate``: aliased arguments are overwritten themselves; those that may not be written to are copied.
        """
        bases: list[np.ndarray] = [np.empty(0)] * len(self.allocations)
        fresh: dict[int, np.ndarray] = {}
        results: list[np.ndarray] = []
        for a in self.allocations:
            if a.kind == "parameter":
                argument = arguments[self.places[a.parameter, a.index]]
                kept = a.number in self.overwritten and not (donate and argument.flags.writeable)
                bases[a.number] = array_pool.copy(argument, a.name) if kept else argument
            elif a.kind == "constant":
                bases[a.number] = self.constants[a.number]
            elif a.kind == "temp":
                bases[a.number] = arenas[a.number]
        for k, (s, (dtype, dims)) in enumerate(zip(self.output_slices, self.outputs, strict=True)):
            n = s.allocation
            if n in self.overwritten:
                same = (bases[n].dtype, bases[n].shape) == (dtype, dims)
                results.append(bases[n] if same else bases[n].reshape(-1).view(dtype).reshape(dims))
                continue
            if n not in fresh:
                fresh[n] = bases[n] = array_pool.empty(dims, dtype, f"output {k}")
            results.append(fresh[n])
        return bases, results
