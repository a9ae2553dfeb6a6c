"""all-gather-dynamic-slice-permuted-offset-simplifier: each device takes the part of one other device."""

from __future__ import annotations

import numpy as np

from heron.analysis.devices.groups import device_groups
from heron.analysis.devices.own_part import parts_taken, places_in_groups, sliced_dimension
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.collectives.model.reductions import is_alone
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class AllGatherDynamicSlicePermutedOffsetSimplifier(Pass):
    """Replaces a dynamic-slice of an all-gather, where each device takes a part of its own, by a collective-permute.

    Only the part that a device needs crosses the network. No two devices of a group may take one part.

    HloModule example, replica_count=2

    g = f32[4] all-gather(f32[2] x), dimensions={0}
    id = u32[] replica-id()
    one = u32[] constant(1)
    two = u32[] constant(2)
    other = u32[] subtract(one, id)
    at = u32[] multiply(other, two)
    ROOT d = f32[2] dynamic-slice(g, at), dynamic_slice_sizes={2}
    ->
    HloModule example, replica_count=2

    ROOT p = f32[2] collective-permute(x), source_target_pairs={{1,0},{0,1}}
    """

    name = "all-gather-dynamic-slice-permuted-offset-simplifier"
    constraints = (
        Constraint(
            "all-gather-dynamic-slice-simplifier",
            "all-gather-dynamic-slice-permuted-offset-simplifier",
            "no exchange at all comes first",
        ),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            for i in c.instructions:
                pairs = _pairs(i, module) if i.opcode == "dynamic-slice" else None
                if pairs is None:
                    continue
                gathered = i.operands[0]
                attrs = {"channel_id": gathered.attrs.get("channel_id"), "source_target_pairs": pairs}
                given = {k: v for k, v in attrs.items() if v is not None}
                c.replace(i, c.add("collective-permute", gathered.operands, i.shape, like=gathered, **given))
                ctx.decide(True, "each device needs the part of one other", subject=i.name)
                changed = True
        return changed


def _pairs(i: Instruction, module: Module) -> tuple[tuple[int, int], ...] | None:
    """(source, target) numbers of devices for a slice that takes part `source` of a gathered array on `target`."""
    gathered, count = i.operands[0], module.replica_count * module.num_partitions
    if gathered.opcode != "all-gather" or not is_alone(gathered) or i.shape.bare is not gathered.operands[0].shape.bare:
        return None
    # a permute's ids are partitions of one replica, or replicas of one partition
    if module.replica_count != 1 and module.num_partitions != 1:
        return None
    if (gathered.attrs.get("channel_id") is not None) != (module.num_partitions > 1):
        return None
    dim, groups = sliced_dimension(i), device_groups(gathered, module)
    if dim is None or gathered.dimensions != (dim,) or places_in_groups(groups, count) is None:
        return None
    parts = parts_taken(i, dim, module)
    if parts is None:
        return None
    sources = np.empty(count, np.int64)
    for group in groups:
        members = np.array(group)
        sources[members] = members[parts[members]]
    if len(np.unique(sources)) != count:
        return None
    return tuple((int(s), t) for t, s in enumerate(sources))
