"""reduce-scatter-combiner: small independent reduce-scatters become one."""

from __future__ import annotations

from collections.abc import Hashable

from heron.hlo.ir.instruction import Instruction
from heron.passes.collectives.model.combining import Combiner
from heron.passes.collectives.model.reductions import meaning_of
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ReduceScatterCombiner(Combiner):
    """Combines reduce-scatters in the same groups along the same dimension that do not depend on each other.

    HloModule example, replica_count=2

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    p = f32[4] reduce-scatter(f32[8] x), dimensions={0}, to_apply=sum
    q = f32[2,3] reduce-scatter(f32[4,3] y), dimensions={0}, to_apply=sum
    ROOT r = (f32[4], f32[2,3]) tuple(p, q)
    ->
    HloModule example, replica_count=2

    b = (f32[4], f32[2,3]) reduce-scatter(x, y), dimensions={0}, to_apply=sum
    p = f32[4] get-tuple-element(b), index=0
    q = f32[2,3] get-tuple-element(b), index=1
    ROOT r = (f32[4], f32[2,3]) tuple(p, q)
    """

    name = "reduce-scatter-combiner"
    opcode = "reduce-scatter"

    def key(self, i: Instruction) -> Hashable | None:
        meaning = meaning_of(i)
        if meaning is None:
            return None
        return (meaning, i.replica_groups, i.dimensions, i.operands[0].shape.element_type)
