"""all-gather-combiner: small independent all-gathers become one."""

from __future__ import annotations

from collections.abc import Hashable

from heron.analysis.devices.groups import groups_key
from heron.hlo.ir.instruction import Instruction
from heron.passes.collectives.model.combining import Combiner
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class AllGatherCombiner(Combiner):
    """Combines all-gathers in the same groups along the same dimension that do not depend on each other.

    HloModule example, replica_count=2

    p = f32[8] all-gather(f32[4] x), dimensions={0}
    q = f32[4,3] all-gather(f32[2,3] y), dimensions={0}
    ROOT r = (f32[8], f32[4,3]) tuple(p, q)
    ->
    HloModule example, replica_count=2

    b = (f32[8], f32[4,3]) all-gather(x, y), dimensions={0}
    p = f32[8] get-tuple-element(b), index=0
    q = f32[4,3] get-tuple-element(b), index=1
    ROOT r = (f32[8], f32[4,3]) tuple(p, q)
    """

    name = "all-gather-combiner"
    opcode = "all-gather"

    def key(self, i: Instruction) -> Hashable | None:
        return (groups_key(i), i.dimensions)
