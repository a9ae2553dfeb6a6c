"""all-reduce-simplifier: all-reduces of values that are equal on all devices need no exchange."""

from __future__ import annotations

from math import log2

from heron.analysis.devices.groups import device_groups
from heron.analysis.devices.replication import replicated_values
from heron.hlo.facts import combiner
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait, get
from heron.hlo.ir.types import PRED
from heron.passes.collectives.model.reductions import is_alone
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import splat
from heron.records import dataclass


@register
@dataclass(frozen=True)
class AllReduceSimplifier(Pass):
    """Replaces an all-reduce whose operand is equal on all devices.

    A sum is the operand times the size of a group; of floats only where that size is a power of two, so that nothing is
    rounded. A maximum, minimum, "and" or "or" is the operand itself.

    HloModule example, replica_count=2

    max {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] maximum(a, b)
    }

    c = f32[4] constant({1, 2, 3, 4})
    ROOT r = f32[4] all-reduce(c), to_apply=max
    ->
    HloModule example, replica_count=2

    ROOT c = f32[4] constant({1, 2, 3, 4})
    """

    name = "all-reduce-simplifier"

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            found = [i for i in c.instructions if i.opcode == "all-reduce"]
            equal = replicated_values(c, module) if found else set()
            for i in found:
                if not is_alone(i) or i.operands[0] not in equal:
                    continue
                value = _without_exchange(i, module)
                if value is None:
                    continue
                ctx.decide(True, "the operand is equal on all devices", subject=i.name)
                c.replace(i, value)
                changed = True
        return changed


def _without_exchange(i: Instruction, module: Module) -> Instruction | None:
    (x,), opcode = i.operands, combiner(i.to_apply)
    if opcode is None:
        return None
    if Trait.IDEMPOTENT in get(opcode).traits or opcode == "add" and x.shape.element_type is PRED:
        return x
    sizes = {len(g) for g in device_groups(i, module)}
    if opcode != "add" or len(sizes) != 1:
        return None
    (size,) = sizes
    if not x.shape.element_type.is_integer and not log2(size).is_integer():
        return None
    assert i.parent is not None
    return i.parent.add("multiply", [x, splat(i.parent, x.shape, size)], i.shape, like=i)
