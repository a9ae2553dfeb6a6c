"""operand-upcaster: matrix products and convolutions in a type the library has."""

from __future__ import annotations

from heron.hlo.facts import is_plain_product
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.types import F8E4M3FN, F8E5M2, F32, ElementType
from heron.hlo.meaning.nibbles import is_packed
from heron.hlo.product_types import sum_type_of
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import convert, splat
from heron.passes.rewriting.expander import home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class OperandUpcaster(Pass):
    """Multiplies in a wider type where the matrix library lacks that of the operands, or they differ.

    The narrow types that it multiplies are data of the target; f32, f64 and complex ones it always does. With
    ``one_type`` it gives results of no other type than the operands', else also wider ones up to f32, and without
    ``rounds`` those only. Products of small floats are exact in f32 and sums are kept in f32, so nothing is lost.
    Integers multiplied by floats, or summed as floats, become floats; where all is integer nothing changes, nor,
    without ``one_type``, with the two kinds of floats of 8 bits that matrix units multiply. Operands of packed nibbles
    are unpacked.

    ROOT r = bf16[4,2] dot(bf16[4,8] x, bf16[8,2] y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ->
    a = f32[4,8] convert(x)
    b = f32[8,2] convert(y)
    wide = f32[4,2] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT r = bf16[4,2] convert(wide)
    """

    name = "operand-upcaster"
    one_type: bool = True
    rounds: bool = True

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.computations_to_rewrite():
            for i in [i for i in c.instructions if is_plain_product(i) and is_packed(i)]:
                _unpack(i)
                changed = True
            for i in [i for i in c.instructions if is_plain_product(i)]:
                if (types := self._wanted(i, ctx)) is not None:
                    _retype(i, *types)
                    changed = True
        return changed

    def _wanted(self, i: Instruction, ctx: PassContext) -> tuple[ElementType, ElementType] | None:
        """The types of operands and product; None where the library can do it as it is, or nothing helps it."""
        operands = {o.shape.element_type for o in i.operands[:2]}
        result = i.shape.element_type
        wide = sum_type_of(i)
        if not (wide.is_float or wide.is_complex):
            return None
        if not all(t.is_float or t.is_complex for t in (*operands, result)):
            return wide, wide
        if not self.one_type and _of_8_bits(i, operands, ctx):
            return None
        t = next(iter(operands))
        if len(operands) == 1 and (t.bits >= 32 or ctx.target is not None and ctx.target.computes_in(i.opcode, t.name)):
            return self._of_one_type(t, result, wide)
        return wide, wide

    def _of_one_type(
        self, t: ElementType, result: ElementType, wide: ElementType
    ) -> tuple[ElementType, ElementType] | None:
        """The types where both operands have type `t`, in which the target multiplies; None to leave them."""
        if not self.rounds and t.bits < 32 and result.bits < 32:
            return t, F32
        if result is t or not self.one_type and t.bits < result.bits <= 32:
            return None
        if not self.one_type and t.is_float and result.bits <= t.bits <= 32:
            return t, F32
        return wide, wide


def _unpack(i: Instruction) -> None:
    """Products of packed nibbles: the product of the low halves of bytes plus that of the high halves."""
    c = home(i)
    low, high = zip(*(_halves(o) for o in i.operands), strict=True)
    parts = [c.attach(i.clone(list(halves))) for halves in (low, high)]
    for part in parts:
        del part.attrs["operand_precision"]
    c.replace(i, c.add("add", parts, i.shape, like=i))


def _halves(x: Instruction) -> tuple[Instruction, Instruction]:
    c, four, t = home(x), splat(home(x), x.shape, 4), x.shape.element_type
    if not t.is_signed:
        return c.add("and", [x, splat(c, x.shape, 15)]), c.add("shift-right-logical", [x, four])
    low = c.add("shift-right-arithmetic", [c.add("shift-left", [x, four]), four])
    return low, c.add("shift-right-arithmetic", [x, four])


def _of_8_bits(i: Instruction, operands: set[ElementType], ctx: PassContext) -> bool:
    """Whether matrix units multiply the two kinds of floats of 8 bits, in sizes that libraries and kernels take."""
    if operands != {F8E4M3FN, F8E5M2} or i.opcode != "dot" or i.shape.element_type.bits > 32:
        return False
    known = ctx.target is not None and all(ctx.target.computes_in("dot", t.name) for t in operands)
    return known and all(n % 16 == 0 for o in i.operands[:2] for n in o.shape.dims[-2:])


def _retype(i: Instruction, operand: ElementType, result: ElementType) -> None:
    c = home(i)
    operands = [convert(o, operand) for o in i.operands[:2]]
    product = c.attach(i.clone([*operands, *i.operands[2:]], i.shape.with_type(result)))
    c.replace(i, convert(product, i.shape.element_type))
