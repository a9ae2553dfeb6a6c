"""collective-permute-combiner: small independent collective-permutes become one."""

from __future__ import annotations

from collections.abc import Hashable

from heron.hlo.ir.instruction import Instruction
from heron.passes.collectives.model.combining import Combiner
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class CollectivePermuteCombiner(Combiner):
    """Combines collective-permutes between the same devices that do not depend on each other.

    HloModule example, replica_count=2

    p = f32[8] collective-permute(f32[8] x), source_target_pairs={{0,1},{1,0}}
    q = s32[3] collective-permute(s32[3] y), source_target_pairs={{0,1},{1,0}}
    ROOT r = (f32[8], s32[3]) tuple(p, q)
    ->
    HloModule example, replica_count=2

    b = (f32[8], s32[3]) collective-permute(x, y), source_target_pairs={{0,1},{1,0}}
    p = f32[8] get-tuple-element(b), index=0
    q = s32[3] get-tuple-element(b), index=1
    ROOT r = (f32[8], s32[3]) tuple(p, q)
    """

    name = "collective-permute-combiner"
    opcode = "collective-permute"

    def key(self, i: Instruction) -> Hashable | None:
        if i.attrs.get("slice_sizes") is not None:  # writes slices into a buffer
            return None
        return (tuple(map(tuple, i.source_target_pairs)), i.channel_id is not None)
