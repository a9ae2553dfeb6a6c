"""Host memory for allocations: where each buffer of a call lives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from heron.errors import HeronError
from heron.hlo.shape import ShapeIndex
from heron.runtime import recycle

if TYPE_CHECKING:
    from heron.buffers.assignment import BufferAssignment

ALIGNMENT = 64


def aligned(size: int) -> np.ndarray:
    """An uninitialised byte array at a 64-byte boundary. Raises RUN010 when memory is short."""
    try:
        raw = np.empty(size + ALIGNMENT, np.uint8)
    except MemoryError as e:
        raise HeronError(
            "RUN010", f"no memory for a buffer of {size:,} bytes", hint="`heron compile` shows peak memory"
        ) from e
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size]


def constant_bytes(value: np.ndarray, size: int) -> np.ndarray:
    """A constant's bytes in memory of its own."""
    buffer = aligned(size)
    value = np.ascontiguousarray(value)
    buffer[: value.nbytes] = value.reshape(-1).view(np.uint8)
    return buffer


class HostMemory:
    """The buffers of one program on the host: constants made once, temp arenas kept for the next call.

    ``arguments`` names the flat arguments as (parameter number, tuple index); ``outputs`` their dtypes and dimensions.
    `bind` gives the base array of every allocation of a call, and the output arrays among them. Safe to use from
    several threads: an arena belongs to one call at a time.
    """

    def __init__(
        self,
        assignment: BufferAssignment,
        arguments: Sequence[tuple[int, ShapeIndex]],
        outputs: Sequence[tuple[np.dtype, tuple[int, ...]]],
    ) -> None:
        self.allocations = assignment.allocations
        self.output_slices = assignment.outputs
        self.outputs = outputs
        self.constants: dict[int, np.ndarray] = {}
        for a in self.allocations:
            if a.kind == "constant" and a.literal is not None:
                self.constants[a.number] = constant_bytes(a.literal.array, a.size)
        self._positions = {key: n for n, key in enumerate(arguments)}
        self._arenas: list[dict[int, np.ndarray]] = []

    def borrow(self) -> dict[int, np.ndarray]:
        """Temp arenas for one call; hand them back with `give_back`."""
        if self._arenas:
            return self._arenas.pop()
        return {a.number: aligned(a.size) for a in self.allocations if a.kind == "temp"}

    def give_back(self, arenas: dict[int, np.ndarray]) -> None:
        self._arenas.append(arenas)

    def bind(
        self, arguments: list[np.ndarray], arenas: dict[int, np.ndarray]
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Base arrays by allocation number, and the output arrays in order (fresh, or an aliased argument's copy)."""
        bases: list[np.ndarray] = [np.empty(0)] * len(self.allocations)
        fresh: dict[int, np.ndarray] = {}
        donated = {a.number for a in self.allocations if a.kind == "parameter" and not a.is_read_only}
        results: list[np.ndarray] = []
        for a in self.allocations:
            if a.kind == "parameter":
                argument = arguments[self._positions[a.parameter, a.index]]
                bases[a.number] = recycle.copy(argument) if a.number in donated else argument
            elif a.kind == "constant":
                bases[a.number] = self.constants[a.number]
            elif a.kind == "temp":
                bases[a.number] = arenas[a.number]
        for s, (dtype, dims) in zip(self.output_slices, self.outputs, strict=True):
            n = s.allocation
            if n in donated:
                results.append(bases[n].reshape(-1).view(dtype).reshape(dims))
                continue
            if n not in fresh:
                fresh[n] = bases[n] = recycle.empty(dims, dtype)
            results.append(fresh[n])
        return bases, results
