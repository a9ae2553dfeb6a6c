"""Several simulated GPUs: each runs until it must wait for another, and they exchange values by the ops' meaning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from heron.errors import HeronError
from heron.runtime.collectives import current
from heron.runtime.collectives.executable import DevicesExecutable, need_few
from heron.runtime.executable import ProgramInfo
from heron.runtime.sim.executable import Runner, SimExecutable
from heron.runtime.thunks import Sequence as Steps

if TYPE_CHECKING:
    from heron.hlo.ir.evaluation import Device


class SimDevices(DevicesExecutable):
    """A GPU program on several devices; results never depend on timing, and a deadlock is an error (EVAL006)."""

    def __init__(self, info: ProgramInfo, sequence: Steps, runners: dict[str, Runner]) -> None:
        super().__init__(info)
        self.sequence, self.runners = sequence, runners
        need_few(info.spread.devices)
        self.each = [SimExecutable(info, sequence, runners) for _ in range(info.spread.devices)]

    def launch(
        self, rows: list[list[np.ndarray]], donate: bool, places: Sequence[int], processes: Sequence[int]
    ) -> list[list[np.ndarray]]:
        from heron.evaluator.devices import World
        from heron.evaluator.walker import Evaluator

        if processes:
            what = f"{self.devices} simulated devices run in one process, {len(places)} given"
            raise HeronError("RUN083", what, hint="simulate all of them in each process, or use the target cpu")
        world = World(self.spread.replicas, self.spread.partitions)

        def run(device: Device) -> list[np.ndarray]:
            current.set_evaluator(Evaluator(world=world, device=device))
            self.each[device.number].on_kernel = self.on_kernel
            return self.each[device.number].execute(rows[device.number], donate)

        return world.run(run)
