"""A program compiled for several NVIDIA GPUs: a thread for each, which exchange arrays by NCCL."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cached_property, partial

import numpy as np

from heron.errors import HeronError
from heron.runtime.collectives import current, mpi
from heron.runtime.collectives.executable import DevicesExecutable
from heron.runtime.cuda.device import Device
from heron.runtime.cuda.driver import CallFailed, driver
from heron.runtime.cuda.executable import CudaExecutable
from heron.runtime.cuda.loaded import Loaded
from heron.runtime.cuda.nccl.binding import nccl
from heron.runtime.cuda.nccl.cliques import Cliques, Members, cliques_of
from heron.runtime.cuda.nccl.crew import Crew, Job
from heron.runtime.cuda.nccl.exchanges import Place, Progress
from heron.runtime.cuda.nccl.gpus import choose, need_different
from heron.runtime.cuda.nccl.watch import Launch
from heron.runtime.cuda.program import GpuProgram
from heron.runtime.executable import ProgramInfo
from heron.runtime.thunks import CollectiveThunk, walk
from heron.targets import libnccl

#: one launch on several GPUs at a time: devices must come to their collectives in one order
_LAUNCH = threading.Lock()


class OnDevice(CudaExecutable):
    """A program on one of its devices."""

    def __init__(self, info: ProgramInfo, code: CudaExecutable, gpu: Device, place: Place) -> None:
        super().__init__(info)
        self._code, self.gpu, self.place = code, gpu, place

    @property
    def program(self) -> GpuProgram:
        return self._code.program

    def _choose(self) -> Device:
        return self.gpu

    def _load(self, device: Device) -> Loaded:
        return Loaded(device, self.program, self.assignment.allocations, self.place)

    def work(self, arrays: list[np.ndarray], cliques: Cliques) -> list[np.ndarray]:
        """The work of the device's thread in a launch. A fault is for whoever waits: others must stop first."""
        current.set_device_number(self.place.number)
        acquired = [self.place.cliques[members] for members in sorted(self.place.cliques)]
        self.gpu.make_current()
        for clique in acquired:  # without the lock: who waits for another process must not keep others from the GPU
            cliques.join(clique, self.place.number)
        with self.gpu.lock:
            loaded = self.load()
            for clique in acquired:
                clique.users.add(loaded)
            try:
                return self._on_copies(loaded, arrays)
            except HeronError as error:
                if (placed := self._placed(error)) is error:
                    raise
                raise placed from error

    def after_fault(self, error: CallFailed) -> HeronError:
        """The error for a fault of the device, which is reset."""
        with self.gpu.lock:
            return self._fault(error, self.gpu.reset())


class _Team:
    """The devices of this process that run a program. ``processes``: that of each device, where there are several."""

    def __init__(self, each: list[OnDevice], processes: Sequence[int], timeout: int) -> None:
        self.each, self.processes, self.timeout = each, processes, timeout
        self.cliques = cliques_of({one.place.number: one.gpu for one in each})
        self.crew = Crew(len(each))

    def share(self, members: Members, make: Callable[[], bytes]) -> bytes:
        """The id of a clique, which all its processes agree on."""
        if len({self.processes[m] for m in members}) < 2:
            return make()
        return mpi.shared(members, self.processes, make, libnccl.ID_BYTES, self.timeout)


class CudaDevices(DevicesExecutable):
    """Runs a program on as many GPUs as this process has devices. ``code``: the program as each of them gets it."""

    def __init__(self, info: ProgramInfo, code: CudaExecutable, timeout: int) -> None:
        super().__init__(info)
        self.code, self.timeout, self._info = code, timeout, info
        self._teams: dict[tuple[int, ...], _Team] = {}

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

    def launch(self, rows: list[list[np.ndarray]], donate: bool, places: Sequence[int]) -> list[list[np.ndarray]]:
        with _LAUNCH:
            team = self._teams.get(tuple(places))
            if team is None or any(one.gpu.driver is not driver() for one in team.each):
                team = self._teams[tuple(places)] = self._team(places)
            groups = [group for t in self.collectives for group in t.groups]
            acquired = team.cliques.acquire(groups, team.share)
            for one in team.each:
                one.place.begin(acquired)
            works = [partial(one.work, row, team.cliques) for one, row in zip(team.each, rows, strict=True)]
            jobs = team.crew.start(works)
            where = [one.place for one in team.each]
            launch = Launch(jobs, where, self.collectives, team.cliques, list(acquired.values()), self.timeout)
            try:
                launch.wait()
            except CallFailed as error:
                raise self._told(team, jobs, error) from error
            finally:
                if launch.hangs:
                    self._leave(team, jobs)
            return [job.result for job in jobs]

    def _leave(self, team: _Team, jobs: Sequence[Job]) -> None:
        """Let threads go that do not come back. A GPU of which one has the lock is of no use to others."""
        del self._teams[tuple(one.place.number for one in team.each)]
        team.crew.stop()
        for one, job in zip(team.each, jobs, strict=True):
            if not job.done.is_set() and not one.gpu.lock.acquire(timeout=0.01):
                one.gpu.lost = f"a launch of {self.name} does not end there"
            elif not job.done.is_set():
                one.gpu.lock.release()

    def _told(self, team: _Team, jobs: Sequence[Job], error: CallFailed) -> HeronError:
        """The error for a call of the driver that failed on a device; one that faulted is reset."""
        found: HeronError = error
        for one, job in zip(team.each, jobs, strict=True):
            if isinstance(job.error, CallFailed) and job.error.is_fault:
                told = one.after_fault(job.error)
                found = told if job.error is error else found
        return found

    def _team(self, places: Sequence[int]) -> _Team:
        """The GPUs for devices of this process. Raises RUN083, RUN089, RUN090 and RUN093 where they cannot run."""
        several = len(places) < self.devices
        processes = mpi.processes_of(self.devices, places) if several else [0] * self.devices
        host = mpi.place_on_this_host() if several else 0
        gpus = choose(self.target, self.program.sm, len(places), host)
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
        return _Team(each, processes, self.timeout)
