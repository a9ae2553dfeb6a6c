"""The processes of a job: how many devices each has, and whether programs can run over them, by MPI."""

from __future__ import annotations

import json
from collections.abc import Sequence

from heron.errors import HeronError
from heron.records import dataclass
from heron.runtime.collectives import mpi
from heron.runtime.collectives.channel import channel

_NOT_STARTED = "mpiexec did not start it"


@dataclass(frozen=True, slots=True)
class Job:
    """The processes that `jax.distributed` has brought together, in their order.

    ``devices``: how many each has. ``ranks``: their numbers in MPI; none where programs cannot run over them, for the
    reason ``obstacle``.

    >>> words = ['{"devices": 2, "rank": 1, "size": 2}', '{"devices": 1, "rank": 0, "size": 2}']
    >>> Job.of(words)
    Job(devices=(2, 1), ranks=(1, 0), obstacle='')
    >>> Job.of([words[0], '{"devices": 1, "why": "mpiexec did not start it"}']).obstacle
    'process 1: mpiexec did not start it'
    """

    devices: tuple[int, ...] = ()
    ranks: tuple[int, ...] = ()
    obstacle: str = "there is no other process"

    @staticmethod
    def of(words: Sequence[str]) -> Job:
        """From what each process says of itself."""
        said = [json.loads(word) for word in words]
        devices = tuple([s["devices"] for s in said])
        for n, s in enumerate(said):
            if "why" in s:
                return Job(devices, (), f"process {n}: {s['why']}")
        sizes, ranks = {s["size"] for s in said}, tuple([s["rank"] for s in said])
        if sizes != {len(said)} or len(set(ranks)) != len(said):
            started = " and ".join(map(str, sorted(sizes)))
            return Job(devices, (), f"mpiexec started {started} processes, jax.distributed has {len(said)}")
        return Job(devices, ranks, "")

    def meet(self) -> None:
        """Come together with the others for programs over processes; all of them have said that they can."""
        if self.ranks:
            channel()

    def ranks_of(self, processes: Sequence[int], name: str) -> tuple[int, ...]:
        """The ranks of processes, for the program of that name. Raises PJRT030 where it cannot run over them."""
        if not self.ranks:
            raise HeronError(
                "PJRT030",
                f"'{name}' is work of processes {', '.join(map(str, sorted(set(processes))))}, which MPI does not join",
                why=self.obstacle,
                hint=f"pip install 'heron[mpi]' mpich, and start the job with mpiexec -n {len(self.devices)} python …",
            )
        return tuple([self.ranks[p] for p in processes])


def own_word(devices: int) -> str:
    """This process, of so many devices, as `Job.of` reads it."""
    said: dict[str, str | int] = {"devices": devices}
    try:
        if mpi.is_active():
            said["rank"], said["size"] = mpi.rank_and_size()
        else:
            said["why"] = _NOT_STARTED
    except HeronError as error:
        said["why"] = f"{error.what} ({error.why})" if error.why else error.what
    return json.dumps(said)
