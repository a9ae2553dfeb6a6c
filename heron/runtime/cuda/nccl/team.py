"""The devices of this process that run a program: GPUs, threads and cliques, and the end of a launch that fails."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from heron.errors import HeronError
from heron.runtime.collectives import current, mpi
from heron.runtime.cuda.array import DeviceArray
from heron.runtime.cuda.device import Device
from heron.runtime.cuda.driver import CallFailed
from heron.runtime.cuda.executable import CudaExecutable, copied
from heron.runtime.cuda.loaded import Loaded
from heron.runtime.cuda.nccl.cliques import PATIENCE, Clique, Cliques, Members, cliques_of
from heron.runtime.cuda.nccl.crew import Crew, Job, wait_for
from heron.runtime.cuda.nccl.exchanges import Place
from heron.runtime.cuda.program import GpuProgram
from heron.runtime.executable import ProgramInfo
from heron.targets import libnccl


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

    def work(self, arrays: list[Any], cliques: Cliques, takes: Sequence[bool] | None) -> list[Any]:
        """The work of the device's thread in a launch: on arrays of the host, or on its own with ``takes``, which it
        may take. A fault is for whoever waits: others must stop first."""
        current.set_device_number(self.place.number)
        acquired = [self.place.cliques[members] for members in sorted(self.place.cliques)]
        with contextlib.nullcontext() if self.gpu.lost else self.gpu.lock:  # not while it is being reset
            self.gpu.make_current()
        for clique in acquired:  # without the lock: who waits for another process must not keep others from the GPU
            cliques.join(clique, self.place.number)
        with self.gpu.lock:
            loaded = self.load()
            for clique in acquired:
                clique.users.add(loaded)
            try:
                return self._on_copies(loaded, arrays) if takes is None else self._there(loaded, arrays, takes)
            except HeronError as error:
                if (placed := self._placed(error)) is error:
                    raise
                raise placed from error

    def _there(self, loaded: Loaded, arrays: list[DeviceArray], takes: Sequence[bool]) -> list[DeviceArray]:
        """Run on arrays of the device, and wait."""
        self.check_there(arrays, loaded.device)
        own = [copied(a) if n in self.overwritten and not takes[n] else a for n, a in enumerate(arrays)]
        outputs = self._enqueue(loaded, own, donate=True)
        loaded.device.synchronize()
        return outputs

    def settle(self, failed: BaseException | None) -> HeronError | None:
        """Have the device ready for the next launch: wait for what is enqueued, on all streams, or reset it after a
        fault. The error of a fault, with the kernel if it is known."""
        with self.gpu.lock:
            fault = failed if isinstance(failed, CallFailed) and failed.is_fault else None
            if fault is None:
                try:
                    self.gpu.make_current()
                    self.gpu.driver.cuCtxSynchronize()
                except CallFailed as found:
                    fault = found
            return None if fault is None else self._fault(fault, self.gpu.reset())


class Team:
    """``each``: the devices. ``processes``: that of each of the program's devices."""

    def __init__(self, each: list[OnDevice], processes: Sequence[int], timeout: int) -> None:
        self.each, self.processes, self.timeout = each, processes, timeout
        self.cliques = cliques_of({one.place.number: one.gpu for one in each})
        self.crew = Crew(len(each))
        #: whether a thread has not come back: the team is of no use any more
        self.hangs = False

    def share(self, members: Members, make: Callable[[], bytes]) -> bytes:
        """The id of a clique, which all its processes agree on."""
        if len({self.processes[m] for m in members}) < 2:
            return make()
        return mpi.shared(members, self.processes, make, libnccl.ID_BYTES, self.timeout)

    def stop(self, jobs: Sequence[Job], acquired: Sequence[Clique], error: BaseException) -> BaseException:
        """End a launch that fails on all devices; the error to raise: of a fault, that of its device."""
        aborts = self.cliques.begin_abort(acquired)
        wait_for(jobs, PATIENCE)
        self.hangs = not all(job.done.is_set() for job in jobs)
        if self.hangs:
            self._leave(jobs)
        else:
            settled = self.crew.start([_settling(one, job) for one, job in zip(self.each, jobs, strict=True)])
            wait_for(settled, PATIENCE)
            self.hangs = not all(job.done.is_set() for job in settled)
            if self.hangs:
                self._leave(settled)
            faults = [job.result for job in settled if job.done.is_set() and job.result is not None]
            error = faults[0] if faults and isinstance(error, CallFailed) else error
        self.cliques.end_abort(acquired, aborts)
        return error

    def _leave(self, jobs: Sequence[Job]) -> None:
        """Let threads go that do not come back. A GPU of which one has the lock is of no use to others."""
        self.crew.stop()
        for one, job in zip(self.each, jobs, strict=True):
            if job.done.is_set():
                continue
            if one.gpu.lock.acquire(timeout=0.01):  # its thread waits for others to join
                one.gpu.lock.release()
            else:
                one.gpu.lost = f"a launch of {one.name} does not end there"


def _settling(one: OnDevice, job: Job) -> Callable[[], HeronError | None]:
    return lambda: one.settle(job.error)
