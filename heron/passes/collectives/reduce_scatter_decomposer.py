"""reduce-scatter-decomposer: a reduce-scatter as an all-reduce of which each device takes its part."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.types import S32
from heron.passes.collectives.model.places import group_size, place_in_group, starts_at
from heron.passes.collectives.model.reductions import is_alone
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import scalar
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ReduceScatterDecomposer(Pass):
    """Replaces reduce-scatters, for machines without one, by an all-reduce and a slice at the place of the device.

    HloModule example, replica_count=2

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    ROOT r = f32[4] reduce-scatter(f32[8] x), dimensions={0}, to_apply=sum
    ->
    ...
    """

    name = "reduce-scatter-decomposer"
    constraints = (Constraint("reduce-scatter-creator", "reduce-scatter-decomposer", "the one would undo the other"),)

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            for i in c.instructions:
                if i.opcode == "reduce-scatter" and is_alone(i) and group_size(i, module) is not None:
                    c.replace(i, _as_slice(i, module))
                    ctx.decide(True, "each device takes its part of the whole sum", subject=i.name)
                    changed = True
        return changed


def _as_slice(i: Instruction, module: Module) -> Instruction:
    c, (x,), (dim,) = i.parent, i.operands, i.dimensions
    assert c is not None
    attrs = {k: v for k, v in i.attrs.items() if k != "dimensions"}
    whole = c.add("all-reduce", [x], x.shape, like=i, **attrs)
    at = c.add("multiply", [place_in_group(i, module), scalar(c, S32, i.shape.dims[dim])], None)
    starts = starts_at(i, dim, at, x.shape.rank)
    return c.add("dynamic-slice", [whole, *starts], i.shape, like=i, dynamic_slice_sizes=i.shape.dims)
