"""Device memory: a best-fit allocator over large regions, or the driver's own pool; both count what they give.

Both free in stream order: memory given back after work was enqueued may be handed out at once, because all work that
uses it comes later on the same stream.
"""

from __future__ import annotations

import bisect
import ctypes
import os
from collections import deque
from typing import TYPE_CHECKING

from heron.errors import HeronError
from heron.options import MemoryLimit
from heron.records import dataclass
from heron.runtime.cuda.driver import CallFailed
from heron.targets import libcuda

if TYPE_CHECKING:
    from heron.runtime.cuda.device import Device

ALIGNMENT = 256
_FIRST_REGION, _LARGEST_REGION = 2 << 20, 1 << 30


@dataclass(slots=True)
class Statistics:
    """Bytes of a device's memory: in use, most in use so far, held from the driver, the limit (0: none); and counts."""

    in_use: int = 0
    peak: int = 0
    held: int = 0
    limit: int = 0
    allocations: int = 0
    regions: int = 0

    def to_json(self) -> dict[str, int]:
        """All figures by name."""
        return {name: getattr(self, name) for name in self.__slots__}


class Allocator:
    """Shared by both kinds of allocators: sizes, figures, and the error when memory is short.

    ``HERON_CUDA_ALLOCATOR``: ``best-fit`` (the default) or ``pool``; ``HERON_CUDA_MEMORY``: most bytes heron may hold.
    """

    def __init__(self, device: Device, limit: int = 0) -> None:
        self.device = device
        self.statistics = Statistics(limit=limit)
        self._returned: deque[tuple[int, int]] = deque()

    @staticmethod
    def of(device: Device) -> Allocator:
        """The allocator the environment asks for. Raises RUN046 for a kind or a limit there is not."""
        kind, text = os.environ.get("HERON_CUDA_ALLOCATOR", ""), os.environ.get("HERON_CUDA_MEMORY", "")
        if kind not in ("", "best-fit", "pool"):
            raise HeronError("RUN046", f"HERON_CUDA_ALLOCATOR cannot be {kind!r}", why="it is best-fit or pool")
        limit = MemoryLimit.parse(text) if text else MemoryLimit()
        if limit is None:
            raise HeronError("RUN046", f"HERON_CUDA_MEMORY cannot be {text!r}", why=MemoryLimit.RULE)
        total = limit.bytes
        if limit.percent:
            total = int(free_and_total(device)[1] * limit.percent / 100)
        make = Pool if kind == "pool" else BestFit
        return make(device, total)

    def allocate(self, size: int) -> int:
        """The address of ``size`` bytes. Raises RUN043 when memory is short, with who has it."""
        size = _rounded(size)
        s = self.statistics
        self._take_back()
        if s.limit and s.in_use + size > s.limit:
            raise self._short(size)
        address = self._take(size)
        s.allocations += 1
        s.in_use += size
        s.peak = max(s.peak, s.in_use)
        return address

    def free(self, address: int, size: int) -> None:
        """Give memory back; `size` as it was asked for. From any thread, at any time: arrays do it when they die."""
        self._returned.append((address, _rounded(size)))

    def _take_back(self) -> None:
        while self._returned:
            address, size = self._returned.popleft()
            self.statistics.in_use -= size
            self._give(address, size)

    def forget(self) -> None:
        """The context is gone, and all memory with it."""
        self._returned.clear()

    def _take(self, size: int) -> int:
        raise NotImplementedError

    def _give(self, address: int, size: int) -> None:
        raise NotImplementedError

    def _short(self, size: int) -> HeronError:
        s = self.statistics
        free, total = free_and_total(self.device)
        limit = f", limit {s.limit:,}" if s.limit else ""
        return HeronError(
            "RUN043",
            f"no memory on {self.device.name} for a buffer of {size:,} bytes",
            why=f"heron has {s.in_use:,} bytes in use of {s.held:,} it holds (most so far {s.peak:,}{limit}); "
            f"the device has {free:,} free of {total:,}",
            hint="`heron mem` shows what a program needs; --memory-limit makes it need less",
        )


def _rounded(size: int) -> int:
    return max(ALIGNMENT, -(-size // ALIGNMENT) * ALIGNMENT)


def free_and_total(device: Device) -> tuple[int, int]:
    """Bytes free on a device, and all it has."""
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    device.driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    return free.value, total.value


@dataclass(slots=True)
class _Chunk:
    address: int
    size: int
    before: _Chunk | None = None
    after: _Chunk | None = None
    is_free: bool = True


class BestFit(Allocator):
    """Regions from the driver, cut into chunks: the smallest free one that fits is taken, neighbours join when freed.

    After TensorFlow's "best fit with coalescing".
    """

    def __init__(self, device: Device, limit: int = 0) -> None:
        super().__init__(device, limit)
        self._chunks: dict[int, _Chunk] = {}
        self._free: list[tuple[int, int]] = []  # (size, address), sorted
        self._regions: dict[int, int] = {}
        self._next = _FIRST_REGION

    def _take(self, size: int) -> int:
        at = bisect.bisect_left(self._free, (size, 0))
        if at == len(self._free):
            self._grow(size)
            at = bisect.bisect_left(self._free, (size, 0))
        _, address = self._free.pop(at)
        chunk = self._chunks[address]
        chunk.is_free = False
        if chunk.size > size:
            rest = _Chunk(address + size, chunk.size - size, chunk, chunk.after)
            if chunk.after is not None:
                chunk.after.before = rest
            chunk.after, chunk.size = rest, size
            self._chunks[rest.address] = rest
            bisect.insort(self._free, (rest.size, rest.address))
        return address

    def _give(self, address: int, size: int) -> None:
        chunk = self._chunks.get(address)
        if chunk is None:  # of a context that is gone
            return
        for neighbour in (chunk.before, chunk.after):
            if neighbour is not None and neighbour.is_free:
                self._remove(neighbour)
        if chunk.after is not None and chunk.after.is_free:
            chunk = self._join(chunk, chunk.after)
        if chunk.before is not None and chunk.before.is_free:
            chunk = self._join(chunk.before, chunk)
        chunk.is_free = True
        bisect.insort(self._free, (chunk.size, chunk.address))

    def _remove(self, chunk: _Chunk) -> None:
        self._free.pop(bisect.bisect_left(self._free, (chunk.size, chunk.address)))

    def _join(self, first: _Chunk, second: _Chunk) -> _Chunk:
        del self._chunks[second.address]
        first.size += second.size
        first.after = second.after
        if second.after is not None:
            second.after.before = first
        return first

    def _grow(self, size: int) -> None:
        s = self.statistics
        wanted = max(size, self._next)
        if s.limit:
            wanted = max(size, min(wanted, s.limit - s.held))
        try:
            address = self._region(wanted)
        except CallFailed as error:
            if error.result != libcuda.OUT_OF_MEMORY:
                raise
            self.trim()
            wanted = size
            try:
                address = self._region(size)
            except CallFailed:
                raise self._short(size) from error
        self._next = min(2 * self._next, _LARGEST_REGION)
        self._regions[address] = wanted
        self._chunks[address] = _Chunk(address, wanted)
        bisect.insort(self._free, (wanted, address))
        s.held += wanted
        s.regions += 1

    def _region(self, size: int) -> int:
        address = ctypes.c_uint64()
        self.device.driver.cuMemAlloc_v2(ctypes.byref(address), size)
        return address.value

    def trim(self) -> None:
        """Give regions nobody uses back to the driver."""
        self._take_back()
        self.device.synchronize()
        for address, size in list(self._regions.items()):
            chunk = self._chunks.get(address)
            if chunk is not None and chunk.is_free and chunk.size == size:
                self._remove(chunk)
                del self._chunks[address], self._regions[address]
                self.device.driver.cuMemFree_v2(address)
                self.statistics.held -= size
                self.statistics.regions -= 1

    def forget(self) -> None:
        super().forget()
        self._chunks.clear()
        self._free.clear()
        self._regions.clear()


class Pool(Allocator):
    """The driver's stream-ordered pool. Raises RUN040 where the driver has none."""

    def __init__(self, device: Device, limit: int = 0) -> None:
        super().__init__(device, limit)
        d = device.driver
        self._pool = d.handle(d.cuDeviceGetDefaultMemPool, device.ordinal)
        keep = ctypes.c_uint64(limit or (1 << 64) - 1)  # memory stays with the pool between calls
        d.cuMemPoolSetAttribute(self._pool, libcuda.POOL_RELEASE_THRESHOLD, ctypes.byref(keep))

    def _take(self, size: int) -> int:
        address = ctypes.c_uint64()
        try:
            self.device.driver.cuMemAllocAsync(ctypes.byref(address), size, self.device.stream)
        except CallFailed as error:
            if error.result != libcuda.OUT_OF_MEMORY:
                raise
            raise self._short(size) from error
        self.statistics.held = self._read(libcuda.POOL_RESERVED)
        return address.value

    def _give(self, address: int, size: int) -> None:
        self.device.driver.cuMemFreeAsync(address, self.device.stream)

    def _read(self, attribute: int) -> int:
        value = ctypes.c_uint64()
        self.device.driver.cuMemPoolGetAttribute(self._pool, attribute, ctypes.byref(value))
        return value.value
