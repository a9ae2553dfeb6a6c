"""Between host and device: through pinned memory, which the device reads and writes by itself."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import numpy as np

from heron.records import dataclass

if TYPE_CHECKING:
    from heron.runtime.cuda.device import Device

_BLOCK, _SMALL_BLOCK, _ALIGNMENT = 4 << 20, 1 << 20, 256


@dataclass(slots=True)
class _Block:
    """Pinned memory: its address, its bytes, the event behind its last use, the bytes that are taken."""

    address: int
    view: np.ndarray
    event: int
    taken: int = 0


class Staging:
    """Two pinned blocks that take turns: one is copied by the host while the device copies the other.

    Small arrays share two further blocks, many of them in one. Nothing is copied from or to memory that is not pinned:
    when the driver reads that is not documented.
    """

    SMALL = 64 << 10

    def __init__(self, device: Device) -> None:
        self.device = device
        self._blocks: list[_Block] = []
        self._small: list[_Block] = []

    def _block(self, turn: int) -> _Block:
        while len(self._blocks) < 2:
            self._blocks.append(self._new(_BLOCK))
        return self._free(self._blocks[turn % 2])

    def _free(self, block: _Block) -> _Block:
        """The block, once nothing uses it any more: an event never recorded is done."""
        self.device.driver.cuEventSynchronize(block.event)
        return block

    def _new(self, size: int) -> _Block:
        d = self.device.driver
        address = d.handle(d.cuMemHostAlloc, size, 0)
        view = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
        return _Block(address, view, self.device.event())

    def _room(self, size: int) -> tuple[_Block, int]:
        """A small block, the first of `_small`, and a place in it for so many bytes."""
        while len(self._small) < 2:
            self._small.append(self._new(_SMALL_BLOCK))
        block = self._small[0]
        if block.taken + size > _SMALL_BLOCK:
            self.device.driver.cuEventRecord(block.event, self.device.stream)
            self._small.reverse()
            block = self._free(self._small[0])
            block.taken = 0
        start = block.taken
        block.taken += -(-size // _ALIGNMENT) * _ALIGNMENT
        return block, start

    def to_device(self, array: np.ndarray, address: int) -> None:
        """Enqueue the copy of a C-contiguous array's bytes; it has been read when this returns."""
        if not array.nbytes:
            return
        d, stream = self.device.driver, self.device.stream
        data = array.reshape(-1).view(np.uint8)
        if data.size <= self.SMALL:
            block, start = self._room(data.size)
            block.view[start : start + data.size] = data
            d.cuMemcpyHtoDAsync_v2(address, block.address + start, data.size, stream)
            return
        for turn, start in enumerate(range(0, data.size, _BLOCK)):
            block = self._block(turn)
            size = min(_BLOCK, data.size - start)
            block.view[:size] = data[start : start + size]
            d.cuMemcpyHtoDAsync_v2(address + start, block.address, size, stream)
            d.cuEventRecord(block.event, stream)

    def to_host(self, address: int, array: np.ndarray) -> None:
        """Copy bytes of the device into a C-contiguous array; waits until they are there."""
        d, stream = self.device.driver, self.device.stream
        data = array.reshape(-1).view(np.uint8)
        if data.size <= self.SMALL:
            if not data.size:
                d.cuStreamSynchronize(stream)
                return
            block, start = self._room(data.size)
            d.cuMemcpyDtoHAsync_v2(block.address + start, address, data.size, stream)
            d.cuStreamSynchronize(stream)
            data[:] = block.view[start : start + data.size]
            return
        starts = range(0, data.size, _BLOCK)
        for turn in range(len(starts) + 1):
            if turn < len(starts):
                block = self._block(turn)
                size = min(_BLOCK, data.size - starts[turn])
                d.cuMemcpyDtoHAsync_v2(block.address, address + starts[turn], size, stream)
                d.cuEventRecord(block.event, stream)
            if turn:
                block = self._blocks[(turn - 1) % 2]
                start = starts[turn - 1]
                size = min(_BLOCK, data.size - start)
                d.cuEventSynchronize(block.event)
                data[start : start + size] = block.view[:size]
