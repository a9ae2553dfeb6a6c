"""result-caster: products in the type of their operands, rounded afterwards."""

from __future__ import annotations

from heron.hlo.facts import plain_products
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import ElementType
from heron.hlo.product_types import result_type
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import convert
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ResultCaster(Expander):
    """Gives a product stated in a narrower type than its operands the operands' type, and converts the result.

    No pipeline has it: kernels round a product's sums to the type it states.

    ROOT r = bf16[4,2] dot(f32[4,8] x, f32[8,2] y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ->
    wide = f32[4,2] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT r = bf16[4,2] convert(wide)
    """

    name = "result-caster"
    opcodes = plain_products()

    def matches(self, i: Instruction) -> bool:
        wide, t = _operand_type(i), i.shape.element_type
        return wide.kind == t.kind and wide.bits > t.bits

    def expand(self, i: Instruction) -> Instruction:
        product = home(i).attach(i.clone(shape=i.shape.with_type(_operand_type(i))))
        return convert(product, i.shape.element_type)


def _operand_type(i: Instruction) -> ElementType:
    return result_type(*(o.shape.element_type for o in i.operands[:2]))
