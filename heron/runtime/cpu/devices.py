"""A program compiled for several devices of this machine's CPU: threads that share its memory."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from heron.runtime.collectives import current, team
from heron.runtime.collectives.across import Exchange
from heron.runtime.collectives.executable import DevicesExecutable
from heron.runtime.collectives.shared_launch import Title
from heron.runtime.collectives.state import GIVEN_UP, Cliques, Device, World
from heron.runtime.collectives.turns import Turns
from heron.runtime.cpu.call import Call, Entry, entry, quick_devices, table_words
from heron.runtime.cpu.executable import HostCalls, View
from heron.runtime.cpu.profile import Profile
from heron.runtime.executable import ProgramInfo, array_facts
from heron.runtime.memory import HostMemory
from heron.runtime.object_code import Object
from heron.runtime.thunks import HostThunk


class DeviceHostCalls(HostCalls):
    """Native entry points for `HostThunk`s of several devices; who calls comes first.

    After an exception all devices of the launch stop. It is raised when they have.
    """

    def __init__(self) -> None:
        super().__init__()
        #: what was raised, by the address of the first buffer table's world
        self.failures: dict[int, BaseException] = {}

    def address(self, t: HostThunk) -> int:
        views = [View.of(dtype, dims) for dtype, dims in t.types]
        function = t.function

        def call(at: int | None, *pointers: int) -> None:
            device = Device.from_address(at) if at else None
            world = device.world if device is not None else 0
            if world in self.failures:
                return
            current.set_device_number(device.number if device is not None else 0)
            try:
                function(*[view.at(p) for p, view in zip(pointers, views, strict=True)])
            except BaseException as error:  # must not cross native frames
                self.failures.setdefault(world, error)
                if world:
                    World.from_address(world).failed = GIVEN_UP

        native = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(t.args) + 1))(call)
        self.keep.append(native)
        return ctypes.cast(native, ctypes.c_void_p).value or 0

    def raise_of(self, tables: Sequence[Any]) -> None:
        """Raise what a call of the launch with these tables raised."""
        if not self.failures or not tables[0][0]:
            return
        world = Device.from_address(tables[0][0]).world
        failure = self.failures.pop(world, None) or self.failures.pop(0, None)
        if failure is not None:
            raise failure


class CpuDevices(DevicesExecutable):
    """Runs native code, one thread a device; constants are shared, all other memory is a device's own."""

    def __init__(
        self,
        info: ProgramInfo,
        program: team.Program,
        groups: Sequence[Sequence[int]],
        objects: tuple[Object, ...],
        hosts: DeviceHostCalls,
        profile: Profile | None = None,
    ) -> None:
        super().__init__(info)
        team.need_threads()
        #: where the time of all calls went, if `Options.profile` asked for it
        self.profile = profile
        #: its object code, that of the program last; machine code lives as long as they do
        self.objects = objects
        self.program, self.groups = program, groups
        self._hosts = hosts
        self._memory = HostMemory(info.assignment, info.signature)
        self._cliques: dict[tuple[int, ...], list[Cliques]] = {}
        self._exchanges: dict[tuple[int, ...], Exchange] = {}
        self._quick: Call | None = None
        self._table = ctypes.c_void_p * (1 + len(self._memory.allocations))

    @property
    def shares(self) -> bool:
        """Whether threads share the work of a device."""
        return self.program.threads > 1

    def launch(
        self, rows: list[list[np.ndarray]], donate: bool, places: Sequence[int], processes: Sequence[int]
    ) -> list[list[np.ndarray]]:
        if not processes:
            return self._run(rows, donate, places, None)
        exchange = self._exchange(tuple(processes))
        exchange.begin(self.program.timeout)
        try:
            outputs = self._run(rows, donate, places, exchange)
        except BaseException as error:
            exchange.give_up(error)
            raise
        exchange.end()
        return outputs

    def _exchange(self, processes: tuple[int, ...]) -> Exchange:
        found = self._exchanges.get(processes)
        if found is None:
            names = self.program.collectives
            title = Title.of(
                self.name,
                devices=processes,
                arrays=[*map(str, self.signature.parameters), str(self.signature.result)],
                collectives=list(names),
                groups=[tuple(g) for g in self.groups],
                text=self.identity,
            )
            found = self._exchanges[processes] = Exchange(title, self.groups, processes, names, self.program.timeout)
        return found

    def _run(
        self, rows: list[list[np.ndarray]], donate: bool, places: Sequence[int], exchange: Exchange | None
    ) -> list[list[np.ndarray]]:
        memory = self._memory
        if donate:
            for row in rows:
                memory.need_apart(row)
        arenas = [memory.borrow() for _ in rows]
        bound = [memory.bind(row, arena, donate) for row, arena in zip(rows, arenas, strict=True)]
        tables = [self._table(0, *[b.ctypes.data for b in bases]) for bases, _ in bound]
        free = self._cliques.setdefault((*places, exchange.address if exchange else 0), [])
        if free:
            cliques = free.pop()
        elif exchange is None:
            cliques = Cliques(self.groups, places)
        else:
            cliques = Cliques(self.groups, places, exchange.address, exchange.processes)
        addresses = [ctypes.addressof(t) + ctypes.sizeof(ctypes.c_void_p) for t in tables]
        try:
            team.run(self.program, cliques, places, addresses, (self, bound, arenas, tables))
        except BaseException:
            self._raise(tables, exchange)
            raise
        self._raise(tables, exchange)
        # those of a launch that failed are in the middle of a meeting
        free.append(cliques)
        for arena in arenas:
            memory.give_back(arena)
        return [results for _, results in bound]

    def native_entry(self) -> Entry | None:
        """The quick way for native code, on the arguments of all devices, which take turns on the caller's thread; None
        where a call has work for Python."""
        if self._hosts.keep:
            return None
        if self._quick is None:
            cliques = Cliques(self.groups, range(self.devices), 0)
            turns = Turns(self.program, cliques, self.devices, 8 * table_words(self._memory))
            leaves = [s for p in self.signature.parameters for _, s in p.leaves() if s.is_array]
            self._quick = quick_devices(self._memory, array_facts(leaves), turns)
        return entry(self._quick)

    def _raise(self, tables: Sequence[Any], exchange: Exchange | None) -> None:
        """Raise what Python raised for a device of the launch with these tables, or at an exchange among processes."""
        self._hosts.raise_of(tables)
        if exchange is not None and exchange.failure is not None:
            raise exchange.failure
