"""all-gather-broadcast-reorder: devices exchange values before they are repeated."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.collectives.model.reductions import is_alone
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array
from heron.records import dataclass


@register
@dataclass(frozen=True)
class AllGatherBroadcastReorder(Pass):
    """Gathers the operand of a broadcast instead of its result, which holds each element several times.

    Where the gathered dimension is one that the broadcast has made, all its parts are equal on a device but not between
    devices; such gathers stay.

    HloModule example, replica_count=2

    b = f32[4,8] broadcast(f32[8] x), dimensions={1}
    ROOT g = f32[4,16] all-gather(b), dimensions={1}
    ->
    HloModule example, replica_count=2

    g = f32[16] all-gather(x), dimensions={0}
    ROOT b = f32[4,16] broadcast(g), dimensions={1}
    """

    name = "all-gather-broadcast-reorder"

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            for i in c.instructions:
                if i.opcode == "all-gather" and _repeats_first(i):
                    _gather_first(i)
                    ctx.decide(True, "fewer bytes before the broadcast", subject=i.name)
                    changed = True
        return changed


def _repeats_first(i: Instruction) -> bool:
    if not is_alone(i):
        return False
    (b,) = i.operands
    if b.opcode != "broadcast" or i.dimensions[0] not in b.dimensions or b.shape.num_elements == 0:
        return False
    return b.operands[0].shape.num_elements < b.shape.num_elements


def _gather_first(i: Instruction) -> None:
    c, (b,) = i.parent, i.operands
    assert c is not None
    x, (dim,) = b.operands[0], i.dimensions
    inner = b.dimensions.index(dim)
    dims = list(x.shape.dims)
    dims[inner] = i.shape.dims[dim]
    attrs = {**i.attrs, "dimensions": (inner,)}
    gathered = c.add("all-gather", [x], array(x.shape.element_type, dims), like=i, **attrs)
    c.replace(i, c.add("broadcast", [gathered], i.shape, like=i, dimensions=b.dimensions))
