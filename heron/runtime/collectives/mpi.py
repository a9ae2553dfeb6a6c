"""Devices in several processes, by MPI (mpi4py): members of a clique in other processes are brought here.

When the members of one process have met, the first of them hands their arrays to the other processes of the clique and
gets theirs: one gathering for all of them. Their slots are filled with what came, and each member computes its results
as if all were here, so that values do not depend on how devices are spread over processes.

A clique over processes has a communicator of its own. Processes are started by mpiexec.
"""

from __future__ import annotations

import ctypes
import os
import time
import zlib
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

import numpy as np

from heron.errors import HeronError
from heron.once import once
from heron.runtime.collectives.state import SLOT, Clique, Op, Piece, Slot

#: the variables by which MPICH and Open MPI tell a process how many there are
_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS")
#: bytes between which the arrays of a message begin
_ALIGNMENT = 16
#: seconds of looking for the end of an exchange without sleeping, and of a sleep after that
_EAGER, _NAP = 2e-3, 2e-4

_COMMUNICATORS: dict[tuple[int, ...], Any] = {}
_LOCK = Lock()


def is_active() -> bool:
    """Whether mpiexec has started this process and others."""
    return any(os.environ.get(name, "1") not in ("", "1") for name in _SIZES)


@once
def _mpi() -> Any:
    """mpi4py's module. Raises RUN083 where it is missing, or cannot be called by several threads."""
    try:
        from mpi4py import MPI  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise HeronError(
            "RUN083", "devices in several processes need mpi4py", why=str(error), hint="pip install 'heron[mpi]'"
        ) from error
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        raise HeronError("RUN083", "MPI was started for one thread", hint="let mpi4py initialise MPI, as it does alone")
    return MPI


def own_places(devices: int) -> range:
    """The numbers of this process's devices, where processes have equal shares in the order of their ranks.

    Raises RUN083 where they cannot.
    """
    world = _mpi().COMM_WORLD
    size, rank = world.Get_size(), world.Get_rank()
    if devices % size:
        what = f"{size} processes cannot share {devices} devices equally"
        raise HeronError("RUN083", what, hint=f"mpiexec -n with a divisor of {devices}")
    share = devices // size
    return range(rank * share, (rank + 1) * share)


def place_on_this_host() -> int:
    """The number of this process among those of its host; 0 where there are no others."""
    if not is_active():
        return 0
    mpi = _mpi()
    near = mpi.COMM_WORLD.Split_type(mpi.COMM_TYPE_SHARED)
    try:
        return near.Get_rank()
    finally:
        near.Free()


def shared(
    members: Sequence[int], processes: Sequence[int], make: Callable[[], bytes], size: int, timeout: int
) -> bytes:
    """Bytes that the process of the first member makes and all processes of a clique get.

    ``processes``: of each device. Raises RUN088 where one of them does not come.
    """
    shares = [processes[m] for m in members]
    ranks = tuple(sorted(set(shares)))
    comm, own = _communicator(tuple(members), ranks), _mpi().COMM_WORLD.Get_rank()
    data = np.zeros(size, np.uint8)
    if shares[0] == own:
        data[:] = np.frombuffer(make(), np.uint8)
    what = f"for the communicator of devices {', '.join(map(str, members))}"
    _finished(comm.Ibcast(data, ranks.index(shares[0])), timeout, own, what)
    return data.tobytes()


def gathered(rows: list[Any]) -> list[Any]:
    """The rows of all processes, in the order of their ranks."""
    return [row for each in _mpi().COMM_WORLD.allgather(rows) for row in each]


def processes_of(devices: int, places: Sequence[int]) -> list[int]:
    """The process of each device, where all have equal shares. Raises RUN083 unless `places` is this one's."""
    if not is_active():
        raise HeronError(
            "RUN083",
            f"this process has {len(places)} of the program's {devices} devices, and there is no other process",
            why="mpiexec did not start it",
            hint=f"mpiexec -n {max(2, devices // max(1, len(places)))} python …",
        )
    own = own_places(devices)
    if list(places) != list(own):
        what = f"this process has devices {own.start} to {own.stop - 1}, arguments of {list(places)} given"
        raise HeronError("RUN083", what)
    return [n // len(own) for n in range(devices)]


class Exchange:
    """Brings the arrays of members of other processes, for the cliques of one launch after another."""

    def __init__(self, groups: Sequence[Sequence[int]], processes: Sequence[int], names: Sequence[str], timeout: int):
        self.groups, self.processes, self.names, self.timeout = groups, processes, names, timeout
        self.rank = _mpi().COMM_WORLD.Get_rank()
        #: what was raised in an exchange, to be raised by who waits for the launch
        self.failure: BaseException | None = None
        self._kept: dict[int, list[Any]] = {}  # by clique: arrays of others, until two exchanges later
        kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        self._native = kind(self._call)
        self.address = ctypes.cast(self._native, ctypes.c_void_p).value or 0

    def _call(self, clique: int, op: int, row: int) -> int:
        try:
            self._bring(Clique.from_address(clique), Op.from_address(op), row)
        except BaseException as error:  # must not cross native frames
            self.failure = error
            return 1
        return 0

    def _bring(self, clique: Clique, op: Op, row: int) -> None:
        members = self.groups[clique.number]
        shares = [self.processes[m] for m in members]
        comm = _communicator(tuple(members), tuple(sorted(set(shares))))
        pieces = (Piece * op.arrays).from_address(op.pieces)
        sizes = [p.operand_bytes for p in pieces]
        starts = np.concatenate([[0], np.cumsum([-(-s // _ALIGNMENT) * _ALIGNMENT for s in sizes])]).astype(int)
        self._need_same(comm, op, bytes(pieces))
        given = np.zeros((shares.count(self.rank), starts[-1]), np.uint8)
        for line, rank in zip(given, (r for r, p in enumerate(shares) if p == self.rank), strict=True):
            table = _table(row, rank)
            for n, size in enumerate(sizes):
                ctypes.memmove(line.ctypes.data + int(starts[n]), table[n], size)
        counts = [shares.count(p) * int(starts[-1]) for p in sorted(set(shares))]
        everything = np.empty((len(members), starts[-1]), np.uint8)
        self._finish(comm.Iallgatherv(given, [everything, counts]), op.number)
        kept: list[Any] = [everything]
        by_process = sorted(range(len(members)), key=lambda r: (shares[r], r))
        for line, rank in zip(everything, by_process, strict=True):
            if shares[rank] != self.rank:
                kept.append(_fill(row, rank, op, [line.ctypes.data + int(s) for s in starts[:-1]]))
        before = self._kept.setdefault(clique.number, [])
        self._kept[clique.number] = [before[-1] if before else None, kept]

    def _need_same(self, comm: Any, op: Op, cut: bytes) -> None:
        """Raise RUN087 unless all processes of the clique are at the same collective, by its number and its content."""
        number = op.number
        content = zlib.crc32(cut, zlib.crc32(f"{self.names[number]} {op.way}".encode()))
        mine, all_ = np.array([number, content], np.int64), np.empty((comm.Get_size(), 2), np.int64)
        self._finish(comm.Iallgather(mine, all_), number)
        other = next((n for n, each in enumerate(all_) if (each != mine).any()), None)
        if other is not None:
            there = int(all_[other, 0])
            name = self.names[there] if there < len(self.names) else f"collective {there}"
            raise HeronError(
                "RUN087",
                "processes are at different collectives",
                why=f"process {self.rank} is at {self.names[number]}, another one at {name}",
                hint="all processes must run the same programs in the same order",
            )

    def _finish(self, request: Any, number: int) -> None:
        """Wait for an exchange. Raises RUN088 when it takes too long."""
        _finished(request, self.timeout, self.rank, f"at {self.names[number]}")


def _finished(request: Any, timeout: int, rank: int, where: str) -> None:
    """Wait for what MPI does. Raises RUN088 after `timeout` seconds, if there is a limit."""
    began = time.monotonic()
    while not request.Test():
        spent = time.monotonic() - began
        if timeout and spent > timeout:
            raise HeronError(
                "RUN088",
                f"process {rank} has waited {spent:.0f} s for other processes",
                why=f"it waits {where}",
                hint="the option device_timeout sets the limit; 0: none",
            )
        time.sleep(0 if spent < _EAGER else _NAP)


def _communicator(members: tuple[int, ...], ranks: tuple[int, ...]) -> Any:
    """The communicator of a clique's processes, made when the clique first meets."""
    with _LOCK:
        found = _COMMUNICATORS.get(members)
    if found is None:
        world = _mpi().COMM_WORLD
        group = world.Get_group().Incl(ranks)
        tag = zlib.crc32(repr(members).encode()) % 30_000
        found = world.Create_group(group, tag)
        with _LOCK:
            _COMMUNICATORS[members] = found
    return found


def _table(row: int, rank: int) -> Any:
    """The addresses of a member's operands."""
    slot = Slot.from_address(row + rank * SLOT)
    return ctypes.cast(slot.arrays, ctypes.POINTER(ctypes.c_void_p))


def _fill(row: int, rank: int, op: Op, operands: Sequence[int]) -> Any:
    """Say where the operands of a member lie that is elsewhere; it has no results here."""
    table = (ctypes.c_void_p * (2 * op.arrays))(*operands)
    slot = Slot.from_address(row + rank * SLOT)
    slot.op, slot.arrays = op.number, ctypes.addressof(table)
    return table
