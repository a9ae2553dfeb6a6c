"""all-reduce-promotion: sums in types that a network cannot add up are exchanged in wider ones."""

from __future__ import annotations

from heron.hlo.facts import combiner
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.types import ElementType, by_name
from heron.passes.collectives.model.reductions import REDUCING, is_alone
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import applied, convert
from heron.records import dataclass


@register
@dataclass(frozen=True)
class AllReducePromotion(Pass):
    """Converts the operand of an all-reduce or a reduce-scatter to a wider type, and the result back.

    ``types`` names narrow types with the wider ones: ``s16=s32,u16=u32``, which NCCL cannot add up. Sums, maxima and
    minima of integers are the same in the wider type, cut to the narrow one. Floats are rounded once instead of at each
    addition.

    HloModule example, replica_count=2

    sum {
      a = s16[] parameter(0)
      b = s16[] parameter(1)
      ROOT s = s16[] add(a, b)
    }

    ROOT r = s16[4] all-reduce(s16[4] x), to_apply=sum
    ->
    HloModule example, replica_count=2

    wide {
      a = s32[] parameter(0)
      b = s32[] parameter(1)
      ROOT s = s32[] add(a, b)
    }

    y = s32[4] convert(x)
    s = s32[4] all-reduce(y), to_apply=wide
    ROOT r = s16[4] convert(s)
    """

    name = "all-reduce-promotion"
    types: str = "s16=s32,u16=u32"

    def run(self, module: Module, ctx: PassContext) -> bool:
        wider = {narrow: by_name(wide) for narrow, wide in (pair.split("=") for pair in self.types.split(","))}
        changed = False
        for c in module.non_fusion_computations():
            for i in c.instructions:
                if i.opcode not in REDUCING or not is_alone(i) or combiner(i.to_apply) is None:
                    continue
                wide = wider.get(i.shape.element_type.name)
                if wide is None:
                    continue
                c.replace(i, _in_type(i, wide, module))
                ctx.decide(True, f"exchanged as {wide}", subject=i.name)
                changed = True
        return changed


def _in_type(i: Instruction, wide: ElementType, module: Module) -> Instruction:
    c, opcode = i.parent, combiner(i.to_apply)
    assert c is not None and opcode is not None
    attrs = {**i.attrs, "to_apply": applied(module, opcode, wide)}
    made = c.add(i.opcode, [convert(i.operands[0], wide)], i.shape.with_type(wide), like=i, **attrs)
    return convert(made, i.shape.element_type)
