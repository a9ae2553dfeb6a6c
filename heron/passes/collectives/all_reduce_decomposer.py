"""all-reduce-decomposer: an all-reduce as an all-gather that each device reduces by itself."""

from __future__ import annotations

from heron.hlo.facts import combiner, identity
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.collectives.model.places import group_size
from heron.passes.collectives.model.reductions import is_alone
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, reshape, scalar
from heron.records import dataclass


@register
@dataclass(frozen=True)
class AllReduceDecomposer(Pass):
    """Replaces all-reduces, for machines whose network cannot reduce: every device gets all operands and reduces them.

    HloModule example, replica_count=2

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    ROOT r = f32[4] all-reduce(f32[4] x), to_apply=sum
    ->
    HloModule example, replica_count=2

    one = f32[1,4] reshape(x)
    g = f32[2,4] all-gather(one), dimensions={0}
    zero = f32[] constant(-0)
    ROOT r = f32[4] reduce(g, zero), dimensions={0}, to_apply=sum
    """

    name = "all-reduce-decomposer"

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            for i in c.instructions:
                size = group_size(i, module) if i.opcode == "all-reduce" and is_alone(i) else None
                start = None if size is None else _identity(i)
                if size is None or start is None:
                    continue
                c.replace(i, _gathered(i, size, start))
                ctx.decide(True, "each device reduces the gathered operands", subject=i.name)
                changed = True
        return changed


def _identity(i: Instruction) -> object | None:
    opcode = combiner(i.to_apply)
    return None if opcode is None else identity(opcode, i.shape.element_type)


def _gathered(i: Instruction, size: int, start: object) -> Instruction:
    c, (x,) = i.parent, i.operands
    assert c is not None
    element, dims = x.shape.element_type, x.shape.dims
    attrs = {k: v for k, v in i.attrs.items() if k != "to_apply"}
    one = reshape(x, (1, *dims))
    whole = c.add("all-gather", [one], array(element, (size, *dims)), like=i, **attrs, dimensions=(0,))
    zero = scalar(c, element, start)
    return c.add("reduce", [whole, zero], i.shape, like=i, dimensions=(0,), to_apply=i.to_apply)
