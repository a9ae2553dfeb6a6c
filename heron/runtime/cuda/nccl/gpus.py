"""The GPUs of this process for the devices of a program: one for each."""

from __future__ import annotations

import ctypes
import socket
from collections.abc import Sequence

from heron.errors import HeronError
from heron.runtime.collectives import mpi
from heron.runtime.cuda.device import Device, device, runs
from heron.runtime.cuda.driver import driver
from heron.targets import cuda


def choose(target: str, sm: str, count: int, turn: int) -> list[Device]:
    """GPUs for `count` devices of this process, the one of that `turn` on its host.

    A process takes its share of all GPUs that it sees; where those are no more than its own share, they are its own. A
    target ``cuda:N`` names the first.

    Raises RUN030 without a GPU, RUN089 where there are too few.
    """
    first = int(target.partition(":")[2] or 0) if target.startswith("cuda") else 0
    known = range(first, driver().devices)
    fitting = [n for n in known if runs(cuda.capability(n) or (0, 0), sm, machine_code=False)]
    share = fitting[turn * count : (turn + 1) * count]
    if len(share) < count:
        share = fitting[:count]
    if len(share) < count:
        raise HeronError(
            "RUN089",
            f"{count} devices of the program need as many GPUs, this process has {len(fitting)} for {sm}",
            why="NCCL takes no two devices on one GPU",
            hint=f"mpiexec over machines with more of them, or --target sim:{sm} to simulate all",
        )
    return [device(n) for n in share]


def need_different(gpus: Sequence[Device], places: Sequence[int]) -> None:
    """Raise RUN089 where processes have chosen one GPU for two devices. All processes call this."""
    host = socket.gethostname()
    taken: dict[tuple[str, bytes], int] = {}
    for number, where in mpi.gathered([(n, (host, _identity(gpu))) for n, gpu in zip(places, gpus, strict=True)]):
        other = taken.setdefault(where, number)
        if other != number:
            raise HeronError(
                "RUN089",
                f"devices {other} and {number} of the program are on one GPU of {where[0]}",
                why="NCCL takes no two devices on one GPU",
                hint="as many processes on a machine as its GPUs allow, or CUDA_VISIBLE_DEVICES for each",
            )


def _identity(gpu: Device) -> bytes:
    """A name that no other GPU has."""
    if not gpu.driver.has("cuDeviceGetUuid_v2"):
        return str(gpu.ordinal).encode()
    uuid = ctypes.create_string_buffer(16)
    gpu.driver.cuDeviceGetUuid_v2(uuid, gpu.ordinal)
    return uuid.raw
