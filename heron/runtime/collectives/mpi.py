"""MPI (mpi4py): whether it is there, which process this one is, and which devices it has. mpiexec starts processes."""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

import numpy as np

from heron.errors import HeronError
from heron.once import once

#: the variables by which MPICH, Open MPI and PMIx (srun) tell a process how many there are, or that there are others
_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS", "PMIX_RANK")
#: seconds of looking for the end of what MPI does without sleeping, and of a sleep after that
_EAGER, _NAP = 2e-3, 2e-4

_COMMUNICATORS: dict[tuple[int, ...], Any] = {}
_LOCK = Lock()


def is_active() -> bool:
    """Whether mpiexec has started this process and others."""
    return any(os.environ.get(name, "1") not in ("", "1") for name in _SIZES[:-1]) or _SIZES[-1] in os.environ


@once
def library() -> Any:
    """mpi4py's module. Raises RUN083 where it is missing, or cannot be called by several threads."""
    try:
        from mpi4py import MPI  # pyright: ignore[reportMissingImports]
    except (ImportError, RuntimeError) as error:  # RuntimeError: mpi4py finds no library of MPI
        raise HeronError(
            "RUN083",
            "devices in several processes need mpi4py and an MPI",
            why=str(error).splitlines()[0],
            hint="pip install 'heron[mpi]' mpich",
        ) from error
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        raise HeronError("RUN083", "MPI was started for one thread", hint="let mpi4py initialise MPI, as it does alone")
    return MPI


def rank_and_size() -> tuple[int, int]:
    """This process's number, and how many mpiexec has started. Raises RUN083."""
    world = library().COMM_WORLD
    return world.Get_rank(), world.Get_size()


def own_places(devices: int) -> range:
    """The numbers of this process's devices, where processes have equal shares in the order of their ranks.

    Raises RUN083 where they cannot.
    """
    rank, size = rank_and_size()
    if devices % size:
        what = f"{size} processes cannot share {devices} devices equally"
        raise HeronError("RUN083", what, hint=f"mpiexec -n with a divisor of {devices}")
    share = devices // size
    return range(rank * share, (rank + 1) * share)


def place_on_this_host() -> int:
    """The number of this process among those of its host; 0 where there are no others."""
    if not is_active():
        return 0
    mpi = library()
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
    comm, own = _communicator(tuple(members), ranks), library().COMM_WORLD.Get_rank()
    data = np.zeros(size, np.uint8)
    if shares[0] == own:
        data[:] = np.frombuffer(make(), np.uint8)
    what = f"for the communicator of devices {', '.join(map(str, members))}"
    _finished(comm.Ibcast(data, ranks.index(shares[0])), timeout, own, what)
    return data.tobytes()


def gathered(rows: list[Any]) -> list[Any]:
    """The rows of all processes, in the order of their ranks."""
    return [row for each in library().COMM_WORLD.allgather(rows) for row in each]


def processes_of(devices: int, places: Sequence[int]) -> tuple[int, ...]:
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
    return tuple(n // len(own) for n in range(devices))


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
        world = library().COMM_WORLD
        group = world.Get_group().Incl(ranks)
        tag = zlib.crc32(repr(members).encode()) % 30_000
        found = world.Create_group(group, tag)
        with _LOCK:
            _COMMUNICATORS[members] = found
    return found
