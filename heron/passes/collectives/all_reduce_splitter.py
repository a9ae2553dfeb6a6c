"""all-reduce-splitter: of a sum that several devices take the same part of, each device reduces one part alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from heron.analysis.devices.groups import device_groups
from heron.analysis.devices.own_part import parts_taken, sliced_dimension
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.replica_groups import Groups
from heron.passes.collectives.model.grouping import among, free_channels
from heron.passes.collectives.model.reductions import is_alone
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class AllReduceSplitter(Pass):
    """Replaces an all-reduce and the slices that devices take of it, each part several times in a group, by two sums.

    A reduce-scatter among devices that take different parts leaves each device its part of their sum. An all-reduce of
    the parts among devices that take the same one adds up the rest. With k parts, the bytes fall from 2 to 1 + 1/k
    arrays. Data that is split over some devices of a group and repeated over others is summed in this way.

    HloModule example, replica_count=4

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    r = f32[4] all-reduce(f32[4] x), replica_groups={{0,1,2,3}}, to_apply=sum
    table = s32[4] constant({0, 2, 0, 2})
    id = u32[] replica-id()
    one = s32[1] dynamic-slice(table, id), dynamic_slice_sizes={1}
    at = s32[] reshape(one)
    ROOT d = f32[2] dynamic-slice(r, at), dynamic_slice_sizes={2}
    ->
    HloModule example, replica_count=4

    s = f32[2] reduce-scatter(x), replica_groups={{0,1},{2,3}}, dimensions={0}, to_apply=sum
    ROOT d = f32[2] all-reduce(s), replica_groups={{0,2},{1,3}}, to_apply=sum
    """

    name = "all-reduce-splitter"
    constraints = (
        Constraint("all-reduce-folder", "all-reduce-splitter", "sums over rows and columns are one by then"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        channels = free_channels(module)
        for c in module.non_fusion_computations():
            for i in c.instructions:
                split = _split(i, module) if i.opcode == "all-reduce" else None
                if split is None:
                    continue
                _sum_parts(i, *split, module, channels)
                ctx.decide(True, f"a part is summed in {len(split[1])} groups, then among them", subject=i.name)
                changed = True
        return changed


def _split(i: Instruction, module: Module) -> tuple[int, Groups, Groups] | None:
    """The sliced dimension, groups that have each part once in order, and groups that have one part each.

    None unless all users take the same parts, and each part equally often in a group but not once.
    """
    if not is_alone(i) or i.is_root or not i.users or any(u.opcode != "dynamic-slice" for u in i.users):
        return None
    users = list(i.users)
    dim = sliced_dimension(users[0])
    if dim is None or any(u.shape.bare is not users[0].shape.bare or i in u.operands[1:] for u in users):
        return None
    if i.shape.dims[dim] % (users[0].shape.dims[dim] or 1):
        return None
    taken = [parts_taken(u, dim, module) for u in users]
    parts = taken[0]
    if parts is None or any(t is None or (t != parts).any() for t in taken):
        return None
    count, inner, outer = i.shape.dims[dim] // users[0].shape.dims[dim], [], []
    for group in device_groups(i, module):
        having: dict[int, list[int]] = defaultdict(list)
        for device in group:
            having[int(parts[device])].append(device)
        rows = [having[part] for part in range(count)]
        if {len(row) for row in rows} != {len(group) // count} or len(rows[0]) < 2:
            return None
        outer += rows
        inner += np.array(rows).T.tolist()
    return dim, tuple(map(tuple, inner)), tuple(map(tuple, outer))


def _sum_parts(i: Instruction, dim: int, inner: Groups, outer: Groups, module: Module, channels: Iterator[int]) -> None:
    c, users = i.parent, list(i.users)
    assert c is not None
    attrs = {**among(i, inner, module, channels), "dimensions": (dim,)}
    part = c.add("reduce-scatter", i.operands, users[0].shape, like=i, **attrs)
    whole = c.add("all-reduce", [part], part.shape, like=users[0], **among(i, outer, module, channels))
    for u in users:
        c.replace(u, whole)
