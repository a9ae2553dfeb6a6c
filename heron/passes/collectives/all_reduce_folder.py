"""all-reduce-folder: an all-reduce over rows after one over columns is one over both."""

from __future__ import annotations

from heron.analysis.devices.groups import device_groups
from heron.hlo.facts import combiner
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.replica_groups import Groups
from heron.passes.collectives.model.grouping import among, free_channels
from heron.passes.collectives.model.reductions import is_alone
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class AllReduceFolder(Pass):
    """Makes one all-reduce of two that follow each other, where their groups are the rows and columns of larger groups.

    HloModule example, replica_count=4

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    p = f32[8] all-reduce(f32[8] x), replica_groups={{0,1},{2,3}}, to_apply=sum
    ROOT q = f32[8] all-reduce(p), replica_groups={{0,2},{1,3}}, to_apply=sum
    ->
    HloModule example, replica_count=4

    ROOT q = f32[8] all-reduce(x), replica_groups={{0,1,2,3}}, to_apply=sum
    """

    name = "all-reduce-folder"

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        channels = free_channels(module)
        for c in module.non_fusion_computations():
            for i in c.instructions:
                groups = _joint_groups(i, module) if i.opcode == "all-reduce" else None
                if groups is None:
                    continue
                (inner,) = i.operands
                attrs = among(i, groups, module, channels)
                c.replace(i, c.add("all-reduce", inner.operands, i.shape, like=i, **attrs))
                ctx.decide(True, "one exchange in the joint groups", subject=i.name)
                changed = True
        return changed


def _joint_groups(i: Instruction, module: Module) -> Groups | None:
    """The groups of one all-reduce that does what `i` and its operand do together, by numbers of devices."""
    if not is_alone(i):
        return None
    (inner,) = i.operands
    if inner.opcode != "all-reduce" or not is_alone(inner) or len(inner.users) != 1 or inner.is_root:
        return None
    opcode = combiner(i.to_apply)
    if opcode is None or opcode != combiner(inner.to_apply):
        return None
    return joined(device_groups(inner, module), device_groups(i, module))


def joined(first: Groups, second: Groups) -> Groups | None:
    """Groups in which each value counts once where it counts once in `first` followed by `second`; None if none do.

    The members of each group of `second` must be one member each of as many groups of `first`, and the groups of
    `second` that meet one group of `first` must meet the same ones.
    """
    home = {device: group for group in first for device in group}
    found: dict[int, tuple[int, ...]] = {}
    for group in second:
        if any(device not in home for device in group):
            return None
        reached = [device for member in group for device in home[member]]
        if len(set(reached)) != len(reached):
            return None
        key = tuple(sorted(reached))
        for device in group:
            found[device] = key
    if len(found) != len(home) or any(found[device] != key for key in found.values() for device in key):
        return None
    return tuple(sorted(set(found.values())))
