"""all-reduce-blueconnect: sums go through fast links within a machine first, then through slow links between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from heron.analysis.devices.groups import device_groups
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.replica_groups import Groups
from heron.passes.collectives.model.grouping import among, free_channels
from heron.passes.collectives.model.reductions import is_alone
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, reshape
from heron.records import dataclass


@register
@dataclass(frozen=True)
class AllReduceBlueconnect(Pass):
    """Replaces an all-reduce across machines by a reduce-scatter, a smaller all-reduce, and an all-gather.

    Each device of a machine sums its part over the machine, then over the machines, and the whole is gathered within
    the machine: an element crosses the slow links once for each machine, not for each device. Source: Cho et al.,
    BlueConnect, MLSys 2019.

    Devices are numbered machine by machine. ``devices_per_host``: in each; 0: as many as the target's nearest links
    join, 8 without a target.

    HloModule example, replica_count=16

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    ROOT r = f32[8] all-reduce(f32[8] x), replica_groups=[1,16]<=[16], to_apply=sum
    ->
    ...
    """

    name = "all-reduce-blueconnect"
    devices_per_host: int = 0

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        per_host = self.devices_per_host or (ctx.target.links[0].devices if ctx.target and ctx.target.links else 8)
        if not per_host:  # the links join any number of devices
            return False
        channels = free_channels(module)
        for c in module.non_fusion_computations():
            for i in c.instructions:
                levels = _levels(i, module, per_host) if i.opcode == "all-reduce" and is_alone(i) else None
                if levels is None:
                    continue
                c.replace(i, _in_three_steps(i, *levels, module, channels))
                ctx.decide(True, "summed within machines first", subject=i.name)
                changed = True
        return changed


def _levels(i: Instruction, module: Module, per_host: int) -> tuple[Groups, Groups] | None:
    """Groups within machines, and groups of the devices that have the same place in them.

    None unless each group has as many members on each of several machines, more than one on each.
    """
    within: list[list[int]] = []
    across: list[list[int]] = []
    sizes: set[int] = set()
    for group in device_groups(i, module):
        machines: dict[int, list[int]] = defaultdict(list)
        for device in group:
            machines[device // per_host].append(device)
        members = list(machines.values())
        sizes |= {len(m) for m in members}
        if len(members) < 2 or len(sizes) != 1:
            return None
        within += members
        across += np.array(members).T.tolist()
    (size,) = sizes
    if size < 2 or i.shape.num_elements % size:
        return None
    return tuple(map(tuple, within)), tuple(map(tuple, across))


def _in_three_steps(
    i: Instruction, within: Groups, across: Groups, module: Module, channels: Iterator[int]
) -> Instruction:
    c, (x,) = i.parent, i.operands
    assert c is not None
    whole = reshape(x, [x.shape.num_elements])
    part = array(x.shape.element_type, [x.shape.num_elements // len(within[0])])
    attrs = {**among(i, within, module, channels), "dimensions": (0,)}
    scattered = c.add("reduce-scatter", [whole], part, like=i, **attrs)
    summed = c.add("all-reduce", [scattered], part, like=i, **among(i, across, module, channels))
    attrs = {**among(i, within, module, channels), "dimensions": (0,)}
    del attrs["to_apply"]
    return reshape(c.add("all-gather", [summed], whole.shape, like=i, **attrs), x.shape.dims)
