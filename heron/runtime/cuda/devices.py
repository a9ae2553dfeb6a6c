"""A program compiled for several NVIDIA GPUs: a thread for each, which exchange arrays by NCCL."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from heron.runtime.collectives import mpi
from heron.runtime.collectives.executable import DevicesExecutable
from heron.runtime.cuda.array import DeviceArray
from heron.runtime.cuda.device import Device
from heron.runtime.cuda.driver import driver
from heron.runtime.cuda.executable import CudaExecutable
from heron.runtime.cuda.nccl.binding import nccl
from heron.runtime.cuda.nccl.exchanges import Place, Progress
from heron.runtime.cuda.nccl.gpus import choose, need_different
from heron.runtime.cuda.nccl.team import OnDevice, Team
from heron.runtime.cuda.nccl.watch import Launch
from heron.runtime.cuda.program import GpuProgram
from heron.runtime.executable import ProgramInfo, need_devices
from heron.runtime.thunks import CollectiveThunk, walk

#: one launch on several GPUs at a time: devices must come to their collectives in one order
_LAUNCH = threading.Lock()


class CudaDevices(DevicesExecutable):
    """Runs a program on as many GPUs as this process has devices. ``code``: the program as each of them gets it."""

    def __init__(self, info: ProgramInfo, code: CudaExecutable, timeout: int) -> None:
        super().__init__(info)
        self.code, self.timeout, self._info = code, timeout, info
        self._teams: dict[tuple[tuple[int, ...], ...], Team] = {}

    @property
    def program(self) -> GpuProgram:
        """The program with its code. Raises what making the code raises."""
        return self.code.program

    def examine(self) -> None:
        self.code.examine()

    @cached_property
    def collectives(self) -> list[CollectiveThunk]:
        """The program's collectives, each once."""
        found = [t for t in walk(self.program.thunks) if isinstance(t, CollectiveThunk)]
        return list({id(t): t for t in found}.values())

    def launch(
        self, rows: list[list[np.ndarray]], donate: bool, places: Sequence[int], processes: Sequence[int]
    ) -> list[list[np.ndarray]]:
        return self._run(rows, None, places, processes=processes)

    def run_there(
        self, rows: Sequence[list[DeviceArray]], gives: Sequence[Sequence[bool]], gpus: Sequence[Device]
    ) -> list[list[DeviceArray]]:
        """Run on arrays of these GPUs, one GPU a device; the outputs, when they are there. ``gives``: of each argument,
        whether the program may take it. Raises as `run_devices` does, RUN049 for arrays elsewhere."""
        need_devices(len(rows), self.devices)
        return self._run(rows, gives, range(self.devices), gpus)

    def _run(
        self,
        rows: Sequence[list[Any]],
        gives: Sequence[Sequence[bool]] | None,
        places: Sequence[int],
        gpus: Sequence[Device] = (),
        processes: Sequence[int] = (),
    ) -> list[list[Any]]:
        """One launch. ``gpus``: those that are given; else they are chosen. ``processes``: of each device."""
        key = (tuple(places), tuple(processes), tuple(gpu.ordinal for gpu in gpus))
        with _LAUNCH:
            team = self._teams.get(key)
            if team is None or any(one.gpu.driver is not driver() for one in team.each):
                team = self._teams[key] = self._team(places, gpus, processes)
            groups = [group for t in self.collectives for group in t.groups]
            acquired = team.cliques.acquire(groups, team.share)
            for one in team.each:
                one.place.begin(acquired)
            each = zip(team.each, rows, gives or [None] * len(rows), strict=True)
            jobs = team.crew.start([partial(one.work, row, team.cliques, takes) for one, row, takes in each])
            where = [one.place for one in team.each]
            launch = Launch(jobs, where, self.collectives, team.cliques, list(acquired.values()), self.timeout)
            error = launch.wait()
            if error is not None:
                error = team.stop(jobs, launch.acquired, error)
                if team.hangs:
                    del self._teams[key]
                raise error
            return [job.result for job in jobs]

    def _team(self, places: Sequence[int], given: Sequence[Device], processes: Sequence[int]) -> Team:
        """The GPUs for devices of this process. Raises RUN083, RUN089, RUN090 and RUN093 where they cannot run."""
        several = len(places) < self.devices
        processes = processes or [0] * self.devices
        host = mpi.place_on_this_host() if several else 0
        gpus = given or choose(self.target, self.program.sm, len(places), host)
        nccl_ = nccl()
        if several:
            need_different(gpus, places)
        numbers = {id(t): n for n, t in enumerate(self.collectives)}
        each: list[OnDevice] = []
        for number, gpu in zip(places, gpus, strict=True):
            with gpu.at_work():
                progress = Progress(gpu) if self.timeout else None
            place = Place(number, self.spread.partitions, nccl_, numbers, progress)
            each.append(OnDevice(self._info, self.code, gpu, place))
        return Team(each, processes, self.timeout)
