"""all-reduce-combiner: small independent all-reduces become one."""

from __future__ import annotations

from collections.abc import Hashable

from heron.hlo.ir.instruction import Instruction
from heron.passes.collectives.model.combining import Combiner
from heron.passes.collectives.model.reductions import meaning_of
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class AllReduceCombiner(Combiner):
    """Combines all-reduces in the same groups that reduce by the same op and do not depend on each other.

    Each exchange costs a latency whatever its size; the combined one pays it once. The arrays may have different
    shapes but have one element type.

    HloModule example, replica_count=2

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    p = f32[4] all-reduce(f32[4] x), to_apply=sum
    q = f32[2,3] all-reduce(f32[2,3] y), to_apply=sum
    ROOT r = (f32[4], f32[2,3]) tuple(p, q)
    ->
    HloModule example, replica_count=2

    b = (f32[4], f32[2,3]) all-reduce(x, y), to_apply=sum
    p = f32[4] get-tuple-element(b), index=0
    q = f32[2,3] get-tuple-element(b), index=1
    ROOT r = (f32[4], f32[2,3]) tuple(p, q)
    """

    name = "all-reduce-combiner"
    opcode = "all-reduce"

    def key(self, i: Instruction) -> Hashable | None:
        meaning = meaning_of(i)
        return None if meaning is None else (meaning, i.replica_groups, i.operands[0].shape.element_type)
