"""Between host and device: through pinned memory, which the device reads and writes by itself."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from heron.runtime.cuda.device import Device

_BLOCK = 4 << 20


class Staging:
    """Two pinned blocks that take turns: one is copied by the host while the device copies the other.

    Small arrays go straight from or to pageable memory, which the driver stages itself.
    """

    SMALL = 64 << 10

    def __init__(self, device: Device) -> None:
        self.device = device
        self._blocks: list[tuple[int, np.ndarray, int]] = []  # address, view, event of its last use

    def _block(self, turn: int) -> tuple[int, np.ndarray, int]:
        d = self.device.driver
        while len(self._blocks) < 2:
            address = d.handle(d.cuMemHostAlloc, _BLOCK, 0)
            view = np.ctypeslib.as_array((ctypes.c_uint8 * _BLOCK).from_address(address))
            self._blocks.append((address, view, self.device.event()))
        block = self._blocks[turn % 2]
        d.cuEventSynchronize(block[2])  # an event never recorded is done
        return block

    def to_device(self, array: np.ndarray, address: int) -> None:
        """Enqueue the copy of a C-contiguous array's bytes; it has been read when this returns."""
        d, stream = self.device.driver, self.device.stream
        if array.nbytes <= self.SMALL:
            if array.nbytes:
                d.cuMemcpyHtoDAsync_v2(address, array.ctypes.data, array.nbytes, stream)
            return
        data = array.reshape(-1).view(np.uint8)
        for turn, start in enumerate(range(0, data.size, _BLOCK)):
            place, view, event = self._block(turn)
            size = min(_BLOCK, data.size - start)
            view[:size] = data[start : start + size]
            d.cuMemcpyHtoDAsync_v2(address + start, place, size, stream)
            d.cuEventRecord(event, stream)

    def to_host(self, address: int, array: np.ndarray) -> None:
        """Copy bytes of the device into a C-contiguous array; waits until they are there."""
        d, stream = self.device.driver, self.device.stream
        if array.nbytes <= self.SMALL:
            if array.nbytes:
                d.cuMemcpyDtoHAsync_v2(array.ctypes.data, address, array.nbytes, stream)
            d.cuStreamSynchronize(stream)
            return
        data = array.reshape(-1).view(np.uint8)
        starts = range(0, data.size, _BLOCK)
        for turn in range(len(starts) + 1):
            if turn < len(starts):
                place, _, event = self._block(turn)
                d.cuMemcpyDtoHAsync_v2(place, address + starts[turn], min(_BLOCK, data.size - starts[turn]), stream)
                d.cuEventRecord(event, stream)
            if turn:
                _, view, event = self._blocks[(turn - 1) % 2]
                start = starts[turn - 1]
                size = min(_BLOCK, data.size - start)
                d.cuEventSynchronize(event)
                data[start : start + size] = view[:size]
