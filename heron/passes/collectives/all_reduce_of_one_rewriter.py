"""all-reduce-of-one-rewriter: a sum to which one device of each group adds anything is a broadcast from that device."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heron.analysis.devices.groups import device_groups
from heron.analysis.devices.per_device import per_device
from heron.analysis.values.splat import splat_value
from heron.hlo.facts import combiner, identity, reindexes
from heron.hlo.ir import replica_groups
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.passes.collectives.model.reductions import is_alone
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import splat
from heron.records import dataclass


@register
@dataclass(frozen=True)
class AllReduceOfOneRewriter(Pass):
    """Replaces an all-reduce of arrays that are neutral on all devices of a group but one.

    Programs hand an array of one device to all others so: ``psum(where(axis_index(...) == k, x, 0))``. A broadcast
    sends it once, a ring of sums nearly twice. Floats are combined with the neutral value once more: -0 + 0 is 0.

    HloModule example, num_partitions=4

    add {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    x = f32[4] parameter(0)
    id = u32[] partition-id()
    three = u32[] constant(3)
    p = pred[] compare(id, three), direction=EQ
    q = pred[4] broadcast(p), dimensions={}
    zero = f32[] constant(0)
    zeros = f32[4] broadcast(zero), dimensions={}
    o = f32[4] select(q, x, zeros)
    ROOT r = f32[4] all-reduce(o), channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true, to_apply=add
    ->
    HloModule example, num_partitions=4

    x = f32[4] parameter(0)
    y = f32[4] collective-broadcast(x), channel_id=1, replica_groups={{3,0,1,2}}
    zero = f32[] constant(0)
    zeros = f32[4] broadcast(zero), dimensions={}
    ROOT r = f32[4] add(y, zeros)
    """

    name = "all-reduce-of-one-rewriter"
    constraints = (
        Constraint("reduce-scatter-creator", "all-reduce-of-one-rewriter", "a part of a sum is cheaper than all of it"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        if module.replica_count > 1 and module.num_partitions > 1:
            return False  # a broadcast has groups of replicas or of partitions
        changed = False
        for c in module.non_fusion_computations():
            for i in c.instructions:
                opcode = combiner(i.to_apply) if i.opcode == "all-reduce" and is_alone(i) else None
                found = _from_one(i, opcode, module) if opcode is not None else None
                if opcode is None or found is None:
                    continue
                value, groups, neutral = found
                channel = {"channel_id": i.attrs["channel_id"]} if module.num_partitions > 1 else {}
                text = replica_groups.spelled(groups)
                made = c.add("collective-broadcast", [value], i.shape, like=i, replica_groups=text, **channel)
                ctx.decide(True, "one device of each group adds to the sum", subject=i.name, object=made.name)
                if i.shape.element_type.is_float or i.shape.element_type.is_complex:
                    made = c.add(opcode, [made, splat(c, i.shape, neutral)], i.shape, like=i)
                c.replace(i, made)
                changed = True
        return changed


def _from_one(
    i: Instruction, opcode: str, module: Module
) -> tuple[Instruction, Sequence[Sequence[int]], object] | None:
    """The array that one device of each group adds, the groups, that device first, and what the others add."""
    chosen = i.operands[0]
    if chosen.opcode != "select":
        return None
    mask = chosen.operands[0]
    while reindexes(mask) and len(mask.operands) == 1:
        mask = mask.operands[0]
    if module.num_partitions > 1 and i.attrs.get("channel_id") is None:
        return None
    takes_first = per_device(mask, module)
    if takes_first is None:
        return None
    for value, other, gives in ((1, 2, takes_first != 0), (2, 1, takes_first == 0)):
        neutral = _neutral(chosen.operands[other], opcode)
        if neutral is not None:
            groups = _led(device_groups(i, module), gives)
            return None if groups is None else (chosen.operands[value], groups, neutral)
    return None


def _led(groups: Sequence[Sequence[int]], gives: np.ndarray) -> list[list[int]] | None:
    """Groups with the one device first that gives something; None where another number of them does."""
    found: list[list[int]] = []
    for group in groups:
        first = [d for d in group if gives[d]]
        if len(first) != 1:
            return None
        found.append([*first, *(d for d in group if d not in first)])
    return found


def _neutral(x: Instruction, opcode: str) -> object | None:
    """The value of all elements of `x`, if that changes no result of `opcode` but for the sign of a zero."""
    neutral = identity(opcode, x.shape.element_type)
    if neutral is None:
        return None
    while len(x.operands) == 1 and (reindexes(x) or neutral == 0 and x.has(Trait.CONVERTS)):
        x = x.operands[0]
    value = splat_value(x)
    return value if value is not None and bool(value == neutral) else None
