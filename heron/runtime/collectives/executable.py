"""Programs on several devices: called on global arrays, or on those of each device."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence as Seq
from typing import Any

import numpy as np

from heron.errors import HeronError
from heron.runtime.collectives import mpi
from heron.runtime.executable import Executable, need_devices

#: devices that one process runs: more would be threads and memory without end
MOST = 4096


def need_few(devices: int) -> None:
    """Raise RUN089 for more devices than one process runs."""
    if devices > MOST:
        what = f"{devices} devices of the program cannot run in one process"
        raise HeronError("RUN089", what, why=f"it runs at most {MOST}", hint="mpiexec over more processes")


class DevicesExecutable(Executable):
    """A program that several devices run at once. `signature` has the shapes of one device.

    ``identity``: what tells it from programs with the same collectives, equal in all processes that run it.
    """

    identity = ""

    def run(self, arrays: Seq[Any], *, donate: bool = False) -> list[np.ndarray]:
        """Run on global arrays, which are cut as the program's parameters are spread; global outputs.

        Raises RUN086 for a program that does not say how its arrays are spread, RUN089 for more devices than one
        process runs, and what `run_devices` raises.
        """
        if not mpi.is_active():
            need_few(self.devices)
        rows = self.spread.cut([np.asarray(a) for a in arrays])
        if not mpi.is_active():
            return self.spread.join(self.run_devices(rows))
        places = mpi.own_places(self.devices)
        return self.spread.join(mpi.gathered(self.run_devices([rows[n] for n in places], places=places)))

    def run_devices(
        self,
        arguments: Seq[Seq[Any]],
        *,
        donate: bool = False,
        places: Seq[int] | None = None,
        processes: Seq[int] | None = None,
    ) -> list[list[np.ndarray]]:
        numbers = range(self.devices) if places is None else places
        need_devices(len(arguments), len(numbers))
        if len(numbers) == self.devices:
            everywhere: Seq[int] = ()
        else:
            everywhere = tuple(processes) if processes else mpi.processes_of(self.devices, numbers)
        rows = [self.checked(row) for row in arguments]
        return [self.finished(row) for row in self.launch(rows, donate, numbers, everywhere)]

    def execute(self, arrays: list[np.ndarray], donate: bool = False) -> list[np.ndarray]:
        raise NotImplementedError("a program for several devices runs by `run_devices`")

    @abstractmethod
    def launch(
        self, rows: list[list[np.ndarray]], donate: bool, places: Seq[int], processes: Seq[int]
    ) -> list[list[np.ndarray]]:
        """Run on the checked arguments of each device of this process.

        Args:
            places: their numbers among all devices of the program.
            processes: the process of each of these, by its rank in MPI; empty where all are in this one.
        """
