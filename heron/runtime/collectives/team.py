"""The threads that run the devices of a program, launches, and what is said of one that fails.

A team has a thread for each device: an operating-system thread that runs native code and sleeps between launches. Teams
serve one launch after another, of any program for as many devices. The caller of a launch waits, and looks after the
devices: where all that have not ended wait for each other it says so at once; where some wait longer than they may for
others that compute, it gives up.
"""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence

from heron.errors import HeronError
from heron.once import once
from heron.records import dataclass
from heron.runtime import compiled
from heron.runtime.collectives.report import Report
from heron.runtime.collectives.state import (
    COMPUTES,
    ENDED,
    GIVEN_UP,
    HELPER,
    LAUNCH,
    MISMATCH,
    OUTSIDE,
    WAIT,
    WORKER,
    Cliques,
    Device,
    Memory,
    World,
)
from heron.runtime.cpu.pool import OWN_SIGNALS, Pool, supported, usable_cpus

#: nanoseconds between two looks at the devices
_LOOK = 100_000_000
#: seconds that devices get to stop in a launch that is given up
_PATIENCE = 5.0
#: looks for the other members of a meeting where there is a CPU for each device; nanoseconds of giving way after that;
#: meetings at which whoever gave way once for as long sleeps at once: on a busy machine that takes milliseconds
_LOOKS, _PATIENT, _DOZES = 100, 60_000, 1000

_FREE: dict[int, list[Team]] = {}
#: teams with a device that did not stop: their memory must stay
_LOST: list[object] = []
_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class Program:
    """A native program for several devices. ``collectives`` names those it has. ``threads``: of each device."""

    address: int
    partitions: int
    collectives: Sequence[str]
    threads: int
    timeout: int


def run(program: Program, cliques: Cliques, places: Sequence[int], tables: Sequence[int], keep: object) -> None:
    """Run a program on the devices of this process, and wait until all have ended.

    Args:
        places: their numbers among all devices of the program.
        tables: addresses of the buffers of each device. The address in front of them is set to the device.
        keep: what must live as long as the devices run.

    Raises RUN087 for devices that wait for each other forever, RUN088 for one that comes too late to a collective.
    """
    team = _borrowed(len(tables))
    try:
        team.run(program, cliques, places, tables)
    finally:
        with _LOCK:
            if team.is_idle:
                _FREE.setdefault(len(tables), []).append(team)
            else:
                _LOST.append((team, cliques, keep))


def _borrowed(devices: int) -> Team:
    with _LOCK:
        free = _FREE.get(devices)
        if free:
            return free.pop()
    return Team(devices)


@once
def _native() -> dict[str, Callable[..., int]]:
    code = compiled.functions(HELPER)
    assert code is not None
    launch = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code[LAUNCH])
    wait = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(code[WAIT])
    return {LAUNCH: launch, WAIT: wait}


@once
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None)
    libc.pthread_create.argtypes = [ctypes.c_void_p] * 4
    libc.pthread_detach.argtypes = [ctypes.c_ulong]
    return libc


def need_threads() -> None:
    """Raise RUN089 where programs for several devices cannot run."""
    if not supported():
        raise HeronError(
            "RUN089",
            "programs for several devices cannot run on this machine",
            why="their threads need Linux on x86-64 or AArch64",
            hint="`heron eval --devices N` runs them",
        )


class Team:
    """The threads of a number of devices, and their world."""

    def __init__(self, count: int) -> None:
        memory = Memory([ctypes.sizeof(World), *[ctypes.sizeof(Device)] * count])
        self._memory = memory
        self.address = memory.take(ctypes.sizeof(World))
        self.world = World.from_address(self.address)
        self.world.count, self.world.patience, self.world.dozes = count, _PATIENT, _DOZES
        self.world.looks = _LOOKS if count <= usable_cpus() else 0
        self.places = [memory.take(ctypes.sizeof(Device)) for _ in range(count)]
        self.devices = [Device.from_address(place) for place in self.places]
        self.pools: dict[int, list[Pool]] = {}
        for n, device in enumerate(self.devices):
            device.number, device.at, device.world = n, ENDED, self.address
        self.world.done = count
        self._start()

    @property
    def is_idle(self) -> bool:
        """Whether all devices have ended the last launch."""
        return self.world.done == self.world.count

    def _start(self) -> None:
        """Start the threads. Raises RUN010 where the system has none left."""
        worker, libc = (compiled.functions(HELPER) or {})[WORKER], _libc()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals) - OWN_SIGNALS)
        try:
            for place in self.places:
                thread = ctypes.c_ulong()
                if libc.pthread_create(ctypes.byref(thread), None, worker, place):
                    _LOST.append(self)  # those that run sleep for ever
                    raise HeronError("RUN010", f"no memory for the threads of {len(self.places)} devices")
                libc.pthread_detach(thread)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def run(self, program: Program, cliques: Cliques, places: Sequence[int], tables: Sequence[int]) -> None:
        """One launch; see `run`."""
        pools = self._pools(program.threads)
        for n, (device, table) in enumerate(zip(self.devices, tables, strict=True)):
            device.number = places[n]
            device.replica, device.partition = divmod(places[n], program.partitions)
            device.at, device.steps, device.failed = COMPUTES, 0, 0
            device.cliques, device.program, device.buffers = cliques.address, program.address, table
            device.pool = pools[n].address if pools else None
            ctypes.c_void_p.from_address(table - ctypes.sizeof(ctypes.c_void_p)).value = self.places[n]
        self.world.failed = 0
        native = _native()
        native[LAUNCH](self.address)
        watch = _Watch(self, program, cliques)
        try:
            while not native[WAIT](self.address, 0, _LOOK):
                watch.look()
        except BaseException:
            self.world.failed = GIVEN_UP
            deadline = time.monotonic() + _PATIENCE
            while not native[WAIT](self.address, 0, _LOOK) and time.monotonic() < deadline:
                pass
            raise
        if self.world.failed in (MISMATCH, OUTSIDE):
            raise watch.report.mismatch() if self.world.failed == MISMATCH else watch.report.outside()

    def _pools(self, threads: int) -> list[Pool]:
        """A pool for each device, where a device has several threads."""
        if threads < 2:
            return []
        if threads not in self.pools:
            self.pools[threads] = [Pool(threads) for _ in self.devices]
        for pool in self.pools[threads]:
            if not pool.started:
                pool.start()
        return self.pools[threads]


class _Watch:
    """Looks after the devices of a launch."""

    def __init__(self, team: Team, program: Program, cliques: Cliques) -> None:
        self.team, self.program, self.cliques = team, program, cliques
        self.seen: list[tuple[int, int]] = []
        self.since = self.looked = time.monotonic()

    def look(self) -> None:
        """Raises RUN087 where devices wait for each other forever, RUN088 where some have waited too long."""
        now = time.monotonic()
        if now - self.looked < _LOOK / 2e9 or self.team.world.failed:
            return
        self.looked = now
        places = [(d.at, d.steps) for d in self.team.devices]
        if places != self.seen:
            self.seen, self.since = places, now
        waiting = sum(at >= 0 for at, _ in places)
        # who has arrived at a meeting that is not complete can only be let go by others
        if waiting and not any(at == COMPUTES for at, _ in places):
            if sum(c.arrived for c in self.cliques.each) == waiting:
                raise self.report.stuck()
        # who waits for other processes knows better which
        limit = self.program.timeout + (_PATIENCE if any(c.exchange for c in self.cliques.each) else 0)
        if waiting and self.program.timeout and now - self.since > limit:
            raise self.report.late(now - self.since)

    @property
    def report(self) -> Report:
        """The places of the devices now."""
        return Report([(d.number, d.at) for d in self.team.devices], self.program.collectives)


def _after_fork() -> None:
    """In a forked child there are no threads of the parent's teams."""
    global _LOCK
    _LOCK = threading.Lock()
    _FREE.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
