"""all-gather-major-dimension-rewriter: parts of any dimension are gathered one behind the other in memory."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.collectives.model.reductions import is_alone
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, reshape, transpose


@register
@dataclass(frozen=True)
class AllGatherMajorDimensionRewriter(Pass):
    """Gathers along the outermost dimension, and moves the parts to where they belong by a transpose.

    Networks that write what they receive piece behind piece need that form. The transpose may become one with what
    reads it.

    HloModule example, replica_count=2

    ROOT g = f32[3,8] all-gather(f32[3,4] x), dimensions={1}
    ->
    HloModule example, replica_count=2

    h = f32[6,4] all-gather(x), dimensions={0}
    p = f32[2,3,4] reshape(h)
    t = f32[3,2,4] transpose(p), dimensions={1,0,2}
    ROOT g = f32[3,8] reshape(t)
    """

    name = "all-gather-major-dimension-rewriter"

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            for i in c.instructions:
                if i.opcode != "all-gather" or not is_alone(i) or prod(i.shape.dims[: i.dimensions[0]]) < 2:
                    continue
                if not i.shape.num_elements:
                    continue
                c.replace(i, _transposed(i))
                ctx.decide(True, "parts are gathered one behind the other", subject=i.name)
                changed = True
        return changed


def _transposed(i: Instruction) -> Instruction:
    c, (x,), (dim,) = i.parent, i.operands, i.dimensions
    assert c is not None
    dims = x.shape.dims
    count = i.shape.dims[dim] // dims[dim]
    attrs = {**i.attrs, "dimensions": (0,)}
    whole = c.add("all-gather", [x], array(x.shape.element_type, [count * dims[0], *dims[1:]]), like=i, **attrs)
    parts = reshape(whole, [count, *dims])
    order = [*range(1, dim + 1), 0, *range(dim + 1, len(dims) + 1)]
    return reshape(transpose(parts, order), i.shape.dims)
