"""all-reduce-reduce-scatter-reorder: arrays are scattered before they are summed, so that only parts are summed."""

from __future__ import annotations

from collections import Counter

from heron.analysis.devices.groups import device_groups
from heron.hlo.facts import combiner
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.collectives.model.reductions import is_alone
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class AllReduceReduceScatterReorder(Pass):
    """Exchanges an all-reduce and the reduce-scatter of its result, where groups of the one cross those of the other.

    The all-reduce then exchanges parts instead of whole arrays. Devices that sum among themselves must receive the same
    part, and the two sums must count the same devices in either order.

    HloModule example, replica_count=4

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    r = f32[8] all-reduce(f32[8] x), replica_groups={{0,2},{1,3}}, to_apply=sum
    ROOT s = f32[4] reduce-scatter(r), replica_groups={{0,1},{2,3}}, dimensions={0}, to_apply=sum
    ->
    HloModule example, replica_count=4

    s = f32[4] reduce-scatter(x), replica_groups={{0,1},{2,3}}, dimensions={0}, to_apply=sum
    ROOT r = f32[4] all-reduce(s), replica_groups={{0,2},{1,3}}, to_apply=sum
    """

    name = "all-reduce-reduce-scatter-reorder"
    constraints = (
        Constraint("reduce-scatter-creator", "all-reduce-reduce-scatter-reorder", "that makes what this looks for"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            for i in c.instructions:
                if i.opcode != "reduce-scatter" or not _may_come_first(i, module):
                    continue
                (reduced,) = i.operands
                part = c.add("reduce-scatter", reduced.operands, i.shape, like=i, **i.attrs)
                c.replace(i, c.add("all-reduce", [part], i.shape, like=reduced, **reduced.attrs))
                ctx.decide(True, "parts are summed instead of whole arrays", subject=i.name)
                changed = True
        return changed


def _may_come_first(i: Instruction, module: Module) -> bool:
    (reduced,) = i.operands if len(i.operands) == 1 else (None,)
    if reduced is None or reduced.opcode != "all-reduce" or not (is_alone(i) and is_alone(reduced)):
        return False
    if len(reduced.users) != 1 or reduced.is_root:
        return False
    opcode = combiner(i.to_apply)
    if opcode is None or opcode != combiner(reduced.to_apply):
        return False
    sums = {device: group for group in device_groups(reduced, module) for device in group}
    scatters = {device: group for group in device_groups(i, module) for device in group}
    return sums.keys() == scatters.keys() and all(_commute(device, sums, scatters) for device in sums)


def _commute(device: int, sums: dict[int, tuple[int, ...]], scatters: dict[int, tuple[int, ...]]) -> bool:
    """Whether a device gets the same of the same devices in either order."""
    own = scatters[device]
    if any(scatters[other].index(other) != own.index(device) for other in sums[device]):
        return False
    one = Counter(d for member in own for d in sums[member])
    return one == Counter(d for member in sums[device] for d in scatters[member])
