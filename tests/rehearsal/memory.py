"""Memory of the rehearsed device: host memory in the role of it, every access held against what is allocated."""

from __future__ import annotations

import bisect
import ctypes
import threading

import numpy as np


class Fault(Exception):
    """The device did something it may not; the result says what, as the driver would."""

    def __init__(self, result: int, why: str) -> None:
        super().__init__(why)
        self.result = result


class DeviceMemory:
    """Allocations of all devices by address. New and freed memory is full of a pattern, so that stale values show."""

    PATTERN = 0xA5

    def __init__(self, total: int) -> None:
        self.total, self.used = total, 0
        self._arrays: dict[int, np.ndarray] = {}
        self._addresses: list[int] = []
        self._owners: dict[int, int] = {}
        self._lock = threading.RLock()

    def allocate(self, size: int, owner: int = 0) -> int | None:
        with self._lock:
            return self._allocate(size, owner)

    def _allocate(self, size: int, owner: int) -> int | None:
        if self.used + size > self.total:
            return None
        raw = np.full(size + 256, self.PATTERN, np.uint8)
        start = -raw.ctypes.data % 256
        address = raw.ctypes.data + start
        self._arrays[address] = raw[start : start + size]
        bisect.insort(self._addresses, address)
        self._owners[address] = owner
        self.used += size
        return address

    def forget(self, owner: int) -> None:
        """Free all that a device has."""
        with self._lock:
            for address in [a for a, o in self._owners.items() if o == owner]:
                self.free(address)

    def owner(self, address: int) -> int:
        """The device whose memory it is; -1 outside of all."""
        with self._lock:
            at = bisect.bisect_right(self._addresses, address) - 1
            return self._owners[self._addresses[at]] if at >= 0 and self.room(address) else -1

    def free(self, address: int) -> bool:
        """Whether there was such an allocation."""
        with self._lock:
            return self._free(address)

    def _free(self, address: int) -> bool:
        array = self._arrays.pop(address, None)
        if array is None:
            return False
        self._addresses.remove(address)
        del self._owners[address]
        array[:] = self.PATTERN
        self.used -= array.size
        return True

    def is_known(self, address: int) -> bool:
        """Whether an address is in an allocation or just behind one, where an array of no elements may lie."""
        return bool(self.room(address) or self.room(address - 1))

    def room(self, address: int) -> int:
        """Bytes from an address to the end of its allocation; 0 outside of all."""
        with self._lock:
            return self._room(address)

    def _room(self, address: int) -> int:
        at = bisect.bisect_right(self._addresses, address) - 1
        if at < 0:
            return 0
        start = self._addresses[at]
        return max(0, start + self._arrays[start].size - address)

    def view(self, address: int, size: int, what: str) -> np.ndarray:
        """The bytes there. Raises `Fault` unless all are allocated."""
        if self.room(address) < size:
            raise Fault(700, f"{what}: {size} bytes at {address:#x} are not all allocated")
        return raw(address, size)


def raw(address: int, size: int) -> np.ndarray:
    """Host memory at an address."""
    if not size:
        return np.empty(0, np.uint8)
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
