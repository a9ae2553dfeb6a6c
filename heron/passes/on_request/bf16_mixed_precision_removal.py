"""bf16-mixed-precision-removal: products of one type only."""

from __future__ import annotations

from heron.hlo.facts import plain_products
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import BF16, F32
from heron.passes.framework.registry import register
from heron.passes.precision.model.widen import in_wider
from heron.passes.rewriting.expander import Expander
from heron.records import dataclass


@register
@dataclass(frozen=True)
class Bf16MixedPrecisionRemoval(Expander):
    """Does products of which some operands or the result are bf16 and others f32 wholly in f32.

    So passes and targets that want one type for all of an op find that. No pipeline has it: products take operands of
    two types.

    ROOT r = f32[4,2] dot(bf16[4,8] x, f32[8,2] y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ->
    a = f32[4,8] convert(x)
    ROOT r = f32[4,2] dot(a, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    """

    name = "bf16-mixed-precision-removal"
    opcodes = plain_products()

    def matches(self, i: Instruction) -> bool:
        return {x.shape.element_type for x in (i, *i.operands)} == {BF16, F32}

    def expand(self, i: Instruction) -> Instruction:
        return in_wider(i, BF16, F32)
