"""Devices that take turns on the thread of their caller, for programs so small that to wake threads takes longer."""

from __future__ import annotations

import ctypes
import mmap
import os
import threading
from typing import Any

from heron.runtime import compiled
from heron.runtime.collectives.state import HELPER, TURNS, Cliques, Device, Memory, World
from heron.runtime.collectives.team import Program
from heron.runtime.cpu.pool import State

#: bytes of a device's stack, of which those are used that it touches, and of the saved state of a thread
_STACK, _CONTEXT = 8 << 20, 1 << 13

_STACKS: dict[int, Stacks] = {}
_LOCK = threading.Lock()


class Stacks:
    """A stack for each of a number of devices, which programs use one after the other. ``taken``: whether one does."""

    def __init__(self, count: int) -> None:
        self._memory = Memory([_CONTEXT] * (count + 1) + [ctypes.sizeof(ctypes.c_int32)])
        self._stacks = mmap.mmap(-1, count * _STACK, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        first = ctypes.addressof(ctypes.c_char.from_buffer(self._stacks))
        self.stacks = [first + n * _STACK for n in range(count)]
        self.contexts = [self._memory.take(_CONTEXT) for _ in range(count)]
        self.callers_context = self._memory.take(_CONTEXT)
        self.taken = ctypes.c_int32.from_address(self._memory.take(ctypes.sizeof(ctypes.c_int32)))

    @staticmethod
    def of(count: int) -> Stacks:
        """The stacks of the process for so many devices; they stay."""
        with _LOCK:
            if count not in _STACKS:
                _STACKS[count] = Stacks(count)
            return _STACKS[count]


class Turns:
    """The devices of one program, and what they need to take turns. Serves one launch at a time.

    Args:
        tables: bytes from the table of one device to the next; each begins with the address of its device.
    """

    def __init__(self, program: Program, cliques: Cliques, count: int, tables: int) -> None:
        memory = Memory([ctypes.sizeof(World), *[ctypes.sizeof(Device)] * count, ctypes.sizeof(State)])
        self._keep: list[Any] = [memory, cliques, program]
        self.world = World.from_address(memory.take(ctypes.sizeof(World)))
        self.world.count, self.world.stride = count, tables
        self.devices = [memory.take(ctypes.sizeof(Device)) for _ in range(count)]
        alone = memory.take(ctypes.sizeof(State))  # a pool with no workers
        for n, place in enumerate(self.devices):
            device = Device.from_address(place)
            device.number, (device.replica, device.partition) = n, divmod(n, program.partitions)
            device.world, device.pool = ctypes.addressof(self.world), alone
            device.cliques, device.program = cliques.address, program.address
            device.next = self.devices[(n + 1) % count]
        if program.collectives:  # else nobody ever waits
            self._give_stacks(Stacks.of(count))

    def _give_stacks(self, stacks: Stacks) -> None:
        self.world.turns = 2 * len(self.devices) + 2
        self.world.context, self.world.taken = stacks.callers_context, ctypes.addressof(stacks.taken)
        for place, stack, context in zip(self.devices, stacks.stacks, stacks.contexts, strict=True):
            device = Device.from_address(place)
            device.stack, device.stack_bytes, device.context = stack, _STACK, context

    @property
    def address(self) -> int:
        """The function that runs them all, called like a program for one device."""
        code = compiled.functions(HELPER)
        assert code is not None
        return code[TURNS]

    @property
    def failed(self) -> int:
        """The address of a number that is not 0 after a launch in which devices waited for each other forever."""
        return ctypes.addressof(self.world) + World.failed.offset


def _after_fork() -> None:
    """In a forked child nobody uses the stacks."""
    global _LOCK
    _LOCK = threading.Lock()
    for each in _STACKS.values():
        each.taken.value = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
