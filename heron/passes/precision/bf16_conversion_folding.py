"""bf16-conversion-folding: products take bf16 and give it without conversions around them."""

from __future__ import annotations

from heron.hlo.facts import is_plain_product
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.types import BF16, F32
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.expander import home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class Bf16ConversionFolding(Pass):
    """Hands bf16 operands to products as they are, and lets products round to bf16 themselves.

    Both operands must be conversions, or the other be bf16 already: libraries want equal types. Products of bf16 values
    are exact in f32, in which they are summed either way. Only where the target multiplies bf16 itself. A result is
    rounded by the product if nothing else uses it unrounded.

    a = f32[4,8] convert(bf16[4,8] x)
    b = f32[8,2] convert(bf16[8,2] y)
    p = f32[4,2] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT r = bf16[4,2] convert(p)
    ->
    ROOT r = bf16[4,2] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    """

    name = "bf16-conversion-folding"

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for i in [i for i in module.instructions() if is_plain_product(i)]:
            if ctx.target is not None and not ctx.target.computes_in(i.opcode, "bf16"):
                continue
            if i.shape.element_type is F32:
                changed |= _fold_operands(i) | _fold_result(i)
        return changed


def _fold_operands(i: Instruction) -> bool:
    narrow = [_unconverted(o) for o in i.operands]
    found = [o for o in narrow if o is not None]
    if len(found) < len(narrow) or found == i.operands:
        return False
    old = list(i.operands)
    i.set_operands(found)
    for o in old:
        home(i).remove_dead_from(o)
    return True


def _unconverted(o: Instruction) -> Instruction | None:
    """The bf16 value an operand holds exactly, or None."""
    if o.opcode == "convert" and o.shape.element_type is F32:
        o = o.operands[0]
    return o if o.shape.element_type is BF16 else None


def _fold_result(i: Instruction) -> bool:
    """Let the product have the type all its users convert it to."""
    if any(o.shape.element_type is not BF16 for o in i.operands) or not i.users or i.is_root:
        return False
    if any(u.opcode != "convert" or u.shape.element_type is not BF16 for u in i.users):
        return False
    c, users = home(i), list(i.users)
    new = c.attach(i.clone(shape=i.shape.with_type(BF16)))
    for u in users:
        c.replace(u, new)
    return True
