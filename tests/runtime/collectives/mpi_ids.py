"""What NCCL's cliques need of MPI: ``mpiexec -n 2 python -m tests.runtime.collectives.mpi_ids``."""

from __future__ import annotations

import pytest

from heron.errors import HeronError
from heron.runtime.collectives import mpi
from heron.runtime.cuda.nccl.gpus import choose, need_different
from heron.targets.libnccl import ID_BYTES
from tests.rehearsal.nccl import rehearsed_devices


def ids() -> None:
    """The process of the first member makes an id, the other gets it; each has its share of the GPUs."""
    own = mpi.own_places(4)
    processes = mpi.processes_of(4, own)
    rank = own.start // 2
    for members in ((0, 1, 2, 3), (3, 0), (1, 2)):
        made: list[bytes] = []

        def make(members: tuple[int, ...] = members, made: list[bytes] = made) -> bytes:
            made.append(bytes([members[0]]) * ID_BYTES)
            return made[0]

        assert mpi.shared(members, processes, make, ID_BYTES, 20) == bytes([members[0]]) * ID_BYTES
        assert bool(made) == (processes[members[0]] == rank)
    assert mpi.place_on_this_host() == rank
    with rehearsed_devices(4):
        gpus = choose("sm_90", "sm_90", 2, rank)
        assert [gpu.ordinal for gpu in gpus] == list(own)
        need_different(gpus, own)
    with rehearsed_devices(2):
        gpus = choose("sm_90", "sm_90", 2, rank)
        with pytest.raises(HeronError, match="RUN089") as error:
            need_different(gpus, own)
        assert "devices 0 and 2 of the program are on one GPU" in str(error.value)


if __name__ == "__main__":
    ids()
