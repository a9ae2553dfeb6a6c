"""all-gather-remove-degenerate-dims: arrays are gathered without their dimensions of size 1."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.collectives.model.reductions import is_alone
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, reshape
from heron.records import dataclass


@register
@dataclass(frozen=True)
class AllGatherRemoveDegenerateDims(Pass):
    """Gathers an array reshaped to have no dimension of size 1, unless it is the gathered one.

    Arrays that differ in such dimensions alone are then gathered along the same dimension, and can be combined. The
    gathered dimension becomes the outermost one more often, and parts then lie one behind the other in memory.

    HloModule example, replica_count=2

    ROOT g = f32[1,8,3] all-gather(f32[1,4,3] x), dimensions={1}
    ->
    HloModule example, replica_count=2

    y = f32[4,3] reshape(x)
    h = f32[8,3] all-gather(y), dimensions={0}
    ROOT g = f32[1,8,3] reshape(h)
    """

    name = "all-gather-remove-degenerate-dims"

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            for i in c.instructions:
                if i.opcode != "all-gather" or not is_alone(i) or len(_kept(i)) == i.shape.rank:
                    continue
                c.replace(i, _without(i))
                ctx.decide(True, "dimensions of size 1 left out", subject=i.name)
                changed = True
        return changed


def _kept(i: Instruction) -> list[int]:
    """The dimensions that are gathered, or have more than one element."""
    return [d for d, n in enumerate(i.operands[0].shape.dims) if n != 1 or d in i.dimensions]


def _without(i: Instruction) -> Instruction:
    c, (x,), kept = i.parent, i.operands, _kept(i)
    assert c is not None
    small = reshape(x, [x.shape.dims[d] for d in kept])
    attrs = {**i.attrs, "dimensions": (kept.index(i.dimensions[0]),)}
    shape = array(x.shape.element_type, [i.shape.dims[d] for d in kept])
    return reshape(c.add("all-gather", [small], shape, like=i, **attrs), i.shape.dims)
