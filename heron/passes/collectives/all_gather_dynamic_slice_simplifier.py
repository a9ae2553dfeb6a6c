"""all-gather-dynamic-slice-simplifier: of a gathered array each device takes back what it gave."""

from __future__ import annotations

from math import prod

from heron.analysis.devices.groups import device_groups
from heron.analysis.devices.own_part import sliced_dimension, takes_own_part
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.collectives.model.reductions import is_alone
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import reshape
from heron.records import dataclass


@register
@dataclass(frozen=True)
class AllGatherDynamicSliceSimplifier(Pass):
    """Replaces a dynamic-slice of an all-gather, where each device takes its own part, by the all-gather's operand.

    HloModule example, replica_count=2

    g = f32[4] all-gather(f32[2] x), dimensions={0}
    id = u32[] replica-id()
    two = u32[] constant(2)
    at = u32[] multiply(id, two)
    d = f32[2] dynamic-slice(g, at), dynamic_slice_sizes={2}
    ROOT r = f32[2] negate(d)
    ->
    HloModule example, replica_count=2

    ROOT r = f32[2] negate(x)
    """

    name = "all-gather-dynamic-slice-simplifier"

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            for i in c.instructions:
                gathered = _takes_back(i, module) if i.opcode == "dynamic-slice" else None
                if gathered is not None:
                    ctx.decide(True, "each device takes the part that it gave", subject=i.name)
                    c.replace(i, reshape(gathered.operands[0], i.shape.dims))
                    changed = True
        return changed


def _takes_back(i: Instruction, module: Module) -> Instruction | None:
    """The all-gather of which a slice, maybe in another form, is the part that the device gave."""
    form = gathered = i.operands[0]
    while gathered.opcode == "reshape":
        gathered = gathered.operands[0]
    if gathered.opcode != "all-gather" or not is_alone(gathered):
        return None
    dim, part = sliced_dimension(i), gathered.operands[0].shape
    if dim is None or i.shape.num_elements != part.num_elements or not part.num_elements:
        return None
    # parts lie behind as many elements in both forms
    if prod(form.shape.dims[:dim]) != prod(gathered.shape.dims[: gathered.dimensions[0]]):
        return None
    return gathered if takes_own_part(i, dim, device_groups(gathered, module), module) else None
