"""all-gather-decomposer: an all-gather as a sum of arrays that are zero outside the own part."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.types import PRED, S32, by_name
from heron.passes.collectives.model.places import group_size, place_in_group, starts_at
from heron.passes.collectives.model.reductions import is_alone
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import applied, bits_of, scalar, splat
from heron.records import dataclass


@register
@dataclass(frozen=True)
class AllGatherDecomposer(Pass):
    """Replaces all-gathers, for machines without one: each device writes its part into zeros, and all are added up.

    The bits are added as integers, so that a negative zero stays one.

    HloModule example, replica_count=2

    ROOT g = f32[8] all-gather(f32[4] x), dimensions={0}
    ->
    ...
    """

    name = "all-gather-decomposer"

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            for i in c.instructions:
                if i.opcode != "all-gather" or not is_alone(i) or group_size(i, module) is None:
                    continue
                if i.operands[0].shape.element_type.is_complex:
                    continue
                c.replace(i, _as_sum(i, module))
                ctx.decide(True, "each device adds its part to zeros", subject=i.name)
                changed = True
        return changed


def _as_sum(i: Instruction, module: Module) -> Instruction:
    c, (x,), (dim,) = i.parent, i.operands, i.dimensions
    assert c is not None
    element = x.shape.element_type
    plain = element if element is PRED or element.is_integer else by_name(f"u{element.bits}")
    part = bits_of(x, plain)
    size = scalar(c, S32, x.shape.dims[dim])
    at = c.add("multiply", [place_in_group(i, module), size], None)
    empty = splat(c, i.shape.with_type(plain), 0)
    placed = c.add("dynamic-update-slice", [empty, part, *starts_at(i, dim, at, x.shape.rank)], empty.shape)
    attrs = {k: v for k, v in i.attrs.items() if k != "dimensions"}
    reducer = applied(module, "or" if plain is PRED else "add", plain)
    return bits_of(c.add("all-reduce", [placed], placed.shape, like=i, **attrs, to_apply=reducer), element)
