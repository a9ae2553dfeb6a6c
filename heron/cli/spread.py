"""A program spread over a mesh: the shardings of ``--mesh``, ``--in``, ``--out``, ``--auto`` and ``--devices``."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from heron.analysis.sharding.program import mesh_of
from heron.cli.auto_shard import AutoReport, shard_parameters
from heron.cli.mesh import annotate, mesh_of_text, remeshed
from heron.errors import HeronError
from heron.hlo.ir.module import Module
from heron.hlo.sharding import Mesh
from heron.passes.control_flow.call_inliner import CallInliner
from heron.passes.devices import sharded
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.sharding.sharding_propagation import ShardingPropagation
from heron.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Spread:
    """The shardings that a user asks for, in the form of the command line.

    Attributes:
        mesh: ``x=2,y=4``; empty for the program's own.
        inputs: of parameters, as ``--in``.
        outputs: of results, as ``--out``.
        limit: a device's memory in bytes, for parameters without a sharding, which get the cheapest one; None where
            they stay as they are.
        devices: the number of devices; 0 for that of the mesh.
        axis: the axis that takes more or fewer devices then; empty for the first one.
    """

    mesh: str = ""
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    limit: float | None = None
    devices: int = 0
    axis: str = ""

    def over(self, module: Module, ctx: PassContext) -> AutoReport | None:
        """Make `module` ready for propagation: its forms of shardings imported, those of the user added. What
        ``--auto`` chose. Raises CLI060 to CLI063 and what the passes raise."""
        chosen = mesh_of_text(self.mesh) if self.mesh else None
        is_bare = _is_bare(module)
        if is_bare and (chosen is not None or self.devices):
            chosen = self._scaled(chosen or Mesh((("devices", self.devices),)))
            annotate(module, chosen, self.inputs, self.outputs)
        if self.limit is not None:
            ctx.run_pass(CallInliner(), module)  # the search looks at one computation at a time
        for step in steps_ahead():
            ctx.run_pass(step, module)
        if not is_bare and (chosen is not None or self.devices):
            chosen = self._scaled(chosen or mesh_of(module))
        if chosen is not None:
            remeshed(module, chosen)
            annotate(module, chosen, self.inputs, self.outputs)
        auto = None
        if self.limit is not None and module.num_partitions > 1:
            trace = ctx.trace
            auto = shard_parameters(
                module, chosen, self.limit, ctx.target, lambda n: trace.begin(f"--auto: program {n}")
            )
        if module.num_partitions == 1 or _is_bare(module):
            raise _nothing_sharded(module, auto)
        return auto

    def at(self, devices: int) -> Spread:
        """The same for another number of devices."""
        return replace(self, devices=devices)

    def _scaled(self, mesh: Mesh) -> Mesh:
        """The mesh of so many devices as are asked for. Raises CLI061."""
        if not self.devices:
            return mesh
        names = [name for name, _ in mesh.axes]
        axis = self.axis or names[0]
        if axis not in names:
            what = f"the mesh has no axis '{axis}'"
            raise HeronError("CLI061", what, where=f"--scale {axis}", why=f"its axes are {', '.join(names)}")
        others = prod(size for name, size in mesh.axes if name != axis)
        if self.devices % others:
            why = f"the other axes of {mesh} have {others} devices together"
            what = f"{self.devices} devices cannot be had by the size of '{axis}'"
            raise HeronError("CLI061", what, where=f"--devices {self.devices}", why=why)
        return Mesh(tuple((name, self.devices // others if name == axis else size) for name, size in mesh.axes))


def _nothing_sharded(module: Module, auto: AutoReport | None) -> HeronError:
    if auto is None:
        hint = "--mesh x=2,y=4 --in 0=x,y shards a parameter, --auto all of them"
        what = "the program is for one device, or nothing in it is sharded"
        return HeronError("CLI063", what, where=module.name, hint=hint)
    why = "no split is cheaper than whole parameters, among those whose axes divide the dimensions"
    hint = "a mesh whose axes divide the parameters' sizes, or --in 0=x,y"
    return HeronError("CLI063", "--auto splits no parameter", where=module.name, why=why, hint=hint)


def steps_ahead() -> Sequence[Pass]:
    """The passes ahead of propagation."""
    steps = sharded().steps
    return steps[: next(n for n, step in enumerate(steps) if isinstance(step, ShardingPropagation))]


def _is_bare(module: Module) -> bool:
    """Whether nothing in the module says how it is sharded."""
    return not any("sharding" in i.extras for i in module.instructions()) and "xla.sdy" not in str(
        module.header.get("frontend_attributes", "")
    )
