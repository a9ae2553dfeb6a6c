"""ragged-all-to-all-canonicalizer: offsets and sizes of ragged exchanges in one type."""

from __future__ import annotations

from heron.hlo.ir.module import Module
from heron.hlo.ir.types import by_name
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import convert
from heron.records import dataclass


@register
@dataclass(frozen=True)
class RaggedAllToAllCanonicalizer(Pass):
    """Converts offsets and sizes of ragged-all-to-alls to integers of one type, which every backend reads.

    ``element_type``: of the converted vectors; those with at least ``enough_bits`` stay.

    HloModule example, replica_count=1

    at = s32[1] constant({1})
    n = s32[1] constant({2})
    ROOT r = f32[4] ragged-all-to-all(f32[4] x, f32[4] y, at, n, at, n), replica_groups={{0}}
    ->
    HloModule example, replica_count=1

    at = s32[1] constant({1})
    n = s32[1] constant({2})
    to = s64[1] convert(at)
    m = s64[1] convert(n)
    ROOT r = f32[4] ragged-all-to-all(x, y, to, m, to, m), replica_groups={{0}}
    """

    name = "ragged-all-to-all-canonicalizer"
    element_type: str = "s64"
    enough_bits: int = 64

    def run(self, module: Module, ctx: PassContext) -> bool:
        to, changed = by_name(self.element_type), False
        for c in module.non_fusion_computations():
            for i in c.instructions:
                if i.opcode != "ragged-all-to-all" or i.operands[2].shape.element_type.bits >= self.enough_bits:
                    continue
                vectors = {o: convert(o, to) for o in dict.fromkeys(i.operands[2:])}
                i.set_operands([*i.operands[:2], *(vectors[o] for o in i.operands[2:])])
                ctx.decide(True, f"offsets as {to}", subject=i.name)
                changed = True
        return changed
