"""all-to-all-decomposer: an all-to-all that splits an array as one of separate arrays."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import tuple_
from heron.passes.collectives.model.places import group_size
from heron.passes.collectives.model.reductions import is_alone
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array
from heron.records import dataclass


@register
@dataclass(frozen=True)
class AllToAllDecomposer(Pass):
    """Replaces an all-to-all that splits its operand by slices, an all-to-all of the slices, and a concatenation.

    HloModule example, replica_count=2

    ROOT r = f32[4] all-to-all(f32[4] x), dimensions={0}
    ->
    HloModule example, replica_count=2

    a = f32[2] slice(x), slice={[0:2]}
    b = f32[2] slice(x), slice={[2:4]}
    t = (f32[2], f32[2]) all-to-all(a, b)
    p = f32[2] get-tuple-element(t), index=0
    q = f32[2] get-tuple-element(t), index=1
    ROOT r = f32[4] concatenate(p, q), dimensions={0}
    """

    name = "all-to-all-decomposer"

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            for i in c.instructions:
                if i.opcode != "all-to-all" or i.attrs.get("dimensions") is None or not is_alone(i):
                    continue
                size = group_size(i, module)
                if size is None or i.shape.dims[i.dimensions[0]] % size:
                    continue
                c.replace(i, _of_slices(i, size))
                ctx.decide(True, "separate arrays are exchanged", subject=i.name)
                changed = True
        return changed


def _of_slices(i: Instruction, size: int) -> Instruction:
    c, (x,), (dim,) = i.parent, i.operands, i.dimensions
    assert c is not None
    length = x.shape.dims[dim] // size
    dims = tuple(length if d == dim else n for d, n in enumerate(x.shape.dims))
    part = array(x.shape.element_type, dims)
    bounds = [(0, n, 1) for n in x.shape.dims]
    slices: list[Instruction] = []
    for n in range(size):
        bounds[dim] = (n * length, (n + 1) * length, 1)
        slices.append(c.add("slice", [x], part, slice=tuple(bounds)))
    attrs = {k: v for k, v in i.attrs.items() if k != "dimensions"}
    exchanged = c.add("all-to-all", slices, tuple_((part,) * size), like=i, **attrs)
    parts = [c.add("get-tuple-element", [exchanged], part, index=n) for n in range(size)]
    return c.add("concatenate", parts, i.shape, like=i, dimensions=(dim,))
