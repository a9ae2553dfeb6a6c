"""A run of a program on many devices, estimated: the content of ``heron cost --mesh``."""

from __future__ import annotations

from typing import Any

from heron.analysis.cost.communication import communicates
from heron.analysis.cost.program import ProgramCost, program_cost
from heron.analysis.cost.report import exchange_to_json
from heron.analysis.cost.step import StepCost, step_cost
from heron.analysis.sharding.program import mesh_of
from heron.backends.compiler import Compilation
from heron.buffers.memory import Memory
from heron.cli.auto_shard import AutoReport
from heron.cli.common import print_json, print_table, print_text
from heron.cli.spread import Spread
from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.hlo.ir.origin import origin
from heron.options import Options
from heron.passes.framework.context import PassContext
from heron.records import dataclass
from heron.targets import Target
from heron.trace import Trace
from heron.trace.summary import seconds, size, table

#: numbers of devices of a table
DEVICES = tuple(2**n for n in range(3, 13))


@dataclass(frozen=True, slots=True)
class StepReport:
    """The estimate of one run of a program on the devices of a mesh.

    Attributes:
        mesh: as text.
        devices: all of them.
        step: seconds, and the collectives.
        cost: the kernels of one device.
        memory: of one device.
        auto: what ``--auto`` chose.
    """

    name: str
    target: Target
    mesh: str
    devices: int
    step: StepCost
    cost: ProgramCost
    memory: Memory
    auto: AutoReport | None = None

    @staticmethod
    def of(module: Module, spread: Spread | None, target: Target, options: Options, trace: Trace) -> StepReport:
        """Compile `module`, spread over a mesh where that is asked for, and estimate a run. `module` is changed.

        Raises CLI065 where it does not fit into the memory that is given."""
        ctx = PassContext(options, target, trace)
        auto = None if spread is None else spread.over(module, ctx)
        mesh = "" if module.num_partitions == 1 else str(mesh_of(module))
        compilation = Compilation(module, target, options, trace)
        made = compilation.scheduled
        devices = made.num_partitions * made.replica_count
        cost, memory = program_cost(made, target), Memory.of(compilation.buffers)
        if auto is not None:
            auto.need_fit(memory.peak, devices)
        return StepReport(module.name, target, mesh, devices, step_cost(made, target), cost, memory, auto)

    @property
    def kernels(self) -> ProgramCost:
        """The steps of one device that are no collectives."""
        return ProgramCost(tuple(s for s in self.cost.steps if communicates(s.instruction) is None))

    def to_json(self) -> dict[str, Any]:
        """Stable fields: seconds of a run and of its parts, ``wire_bytes`` of a device, ``memory`` of a device by kind,
        ``collectives`` in order, ``auto``."""
        return {
            "mesh": self.mesh,
            "devices": self.devices,
            "seconds": self.step.seconds,
            "compute_seconds": self.step.compute,
            "communication_seconds": self.step.communication,
            "exposed_seconds": self.step.exposed,
            "wire_bytes": self.step.wire_bytes,
            "memory": dict(self.memory),
            "memory_bytes": self.target.memory_bytes,
            "collectives": [exchange_to_json(e) for e in self.step.exchanges],
            "auto": None if self.auto is None else self.auto.to_json(),
        }

    def show(self, top: int) -> None:
        """Print the estimate; the kernels follow in a table of their own."""
        step, memory = self.step, self.memory
        print_text(
            f"{self.name} on {self.devices} x {self.target.name}{', ' * bool(self.mesh)}{self.mesh}:"
            f" a run takes about {seconds(step.seconds)}"
        )
        if self.auto is not None:
            print_text("\n".join(self.auto.lines()))
        print_text(
            f"compute {seconds(step.compute)}, communication {seconds(step.communication)},"
            f" of which {seconds(step.exposed)} are exposed"
        )
        print_text(f"each device: {size(memory.peak)} of memory at most, of {size(self.target.memory_bytes)}")
        if not step.exchanges:
            print_text("\nno collectives\n")
            return
        print_text(f"\ncollectives: {size(step.wire_bytes)} on the wire of each device")
        made = table("op", "from", "devices>", "links", "runs>", "bytes>", "on the wire>", "time>", "exposed>")
        rows = sorted(step.exchanges, key=lambda e: -e.runs * e.seconds)
        for e in rows[:top]:
            made.add_row(
                e.instruction.name,
                origin(e.instruction),
                str(e.pace.members),
                e.pace.links,
                f"{e.runs:g}" + "?" * (not e.known),
                size(e.bytes),
                size(e.wire_bytes),
                seconds(e.runs * e.seconds),
                seconds(e.runs * e.exposed),
            )
        print_table(made)
        if len(rows) > top:
            rest = sum(e.runs * e.seconds for e in rows[top:])
            print_text(f"… and {len(rows) - top} more, {seconds(rest)}; --top {len(rows)} shows all")
        print_text("")


def scaled(
    module: Module, spread: Spread, target: Target, options: Options, trace: Trace
) -> list[StepReport | HeronError]:
    """The same program on 8 to 4,096 devices, more or fewer along one axis; the error where it does not fit.

    Raises the first of them if it fits nowhere."""
    found: list[StepReport | HeronError] = []
    for devices in DEVICES:
        try:
            found.append(StepReport.of(module.clone(), spread.at(devices), target, options, trace))
        except HeronError as error:
            found.append(error)
    if not any(isinstance(row, StepReport) for row in found):
        assert isinstance(found[0], HeronError)
        raise found[0]
    return found


def show(rows: list[StepReport | HeronError], as_json: bool) -> None:
    """Print one row for each number of devices."""
    reports = [r for r in rows if isinstance(r, StepReport)]
    if as_json:
        print_json([r.to_json() for r in reports])
        return
    made = table("devices>", "mesh", "run>", "compute>", "communication>", "exposed>", "memory>", "speed-up>")
    for r in reports:
        made.add_row(
            f"{r.devices:,}",
            r.mesh.removeprefix("mesh"),
            seconds(r.step.seconds),
            seconds(r.step.compute),
            seconds(r.step.communication),
            seconds(r.step.exposed),
            size(r.memory.peak),
            f"{reports[0].step.seconds / r.step.seconds:.2f}",
        )
    if reports:
        print_text(f"{reports[0].name} on {reports[0].target.name}")
        print_table(made)
    for devices, error in zip(DEVICES, rows, strict=True):
        if isinstance(error, HeronError):
            print_text(f"not on {devices:,} devices: {error.what}" + (f": {error.why}" if error.why else ""))
