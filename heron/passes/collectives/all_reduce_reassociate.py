"""all-reduce-reassociate: the sum of two all-reduces is one all-reduce of the sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from heron.hlo.facts import combiner
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.collectives.model.reductions import is_alone, reduces_alike
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register


@dataclass(frozen=True)
class Reassociation(Pass):
    """The common part of the passes that combine before they exchange instead of afterwards."""

    #: the collective
    opcode: ClassVar[str]

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            for i in c.instructions:
                if i.parent is c and self._is_pair(i):
                    _combine_first(i)
                    ctx.decide(True, "one exchange of the combined operands instead of two", subject=i.name)
                    changed = True
        return changed

    def _is_pair(self, i: Instruction) -> bool:
        if len(i.operands) != 2:
            return False
        a, b = i.operands
        if a is b or a.opcode != self.opcode or b.opcode != self.opcode or a.shape.bare is not b.shape.bare:
            return False
        alone = all(is_alone(x) and len(x.users) == 1 and not x.is_root for x in (a, b))
        return alone and combiner(a.to_apply) == i.opcode and reduces_alike(a, b)


def _combine_first(i: Instruction) -> None:
    c, (a, b) = i.parent, i.operands
    assert c is not None
    combined = c.add(i.opcode, [a.operands[0], b.operands[0]], a.operands[0].shape, like=i)
    exchanged = c.add(a.opcode, [combined], a.shape, like=a, **a.attrs)
    c.replace(i, exchanged)


@register
@dataclass(frozen=True)
class AllReduceReassociate(Reassociation):
    """Combines the operands of two all-reduces that only one op uses, where that op is what they reduce by.

    The number of bytes halves. Chains of sums become one all-reduce. Sums of floats are added in another order, which
    an all-reduce leaves open anyway.

    HloModule example, replica_count=2

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    p = f32[4] all-reduce(f32[4] x), to_apply=sum
    q = f32[4] all-reduce(f32[4] y), to_apply=sum
    ROOT r = f32[4] add(p, q)
    ->
    HloModule example, replica_count=2

    s = f32[4] add(x, y)
    ROOT p = f32[4] all-reduce(s), to_apply=sum
    """

    name = "all-reduce-reassociate"
    opcode = "all-reduce"
