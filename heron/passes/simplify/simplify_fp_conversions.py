"""simplify-fp-conversions: a chain of conversions between floats is one conversion."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.simplify.algebraic.convert import skips
from heron.records import dataclass


@register
@dataclass(frozen=True)
class SimplifyFpConversions(Pass):
    """Converts floats once where they are converted by way of other floats, as they are after types are normalised.

    A type in between that holds all values of the first changes nothing. One that rounds is left out only where the
    option ``math`` allows rounding to change; XLA leaves it out by default, as excess precision.

    a = f32[4] convert(f16[4] x)
    ROOT r = f64[4] convert(a)
    ->
    ROOT r = f64[4] convert(x)
    """

    name = "simplify-fp-conversions"
    looks_for = frozenset({"convert"})

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed, any_rounding = False, ctx.options.allows("reassociating")
        for c in module.computations_to_rewrite():
            for i in [i for i in c.instructions if i.opcode == "convert"]:
                x = _source(i, any_rounding) if i.parent is c else None  # it died with the end of its chain
                if x is None:
                    continue
                same = x.shape.element_type is i.shape.element_type
                c.replace(i, x if same else c.add("convert", [x], i.shape, like=i))
                changed = True
        return changed


def _source(i: Instruction, any_rounding: bool) -> Instruction | None:
    """The value that `i` may convert directly; None if that is its operand."""
    if not i.shape.element_type.is_float:
        return None
    x = i.operands[0]
    while x.opcode == "convert" and x.shape.element_type.is_float:
        before = x.operands[0].shape.element_type
        if not before.is_float or not (any_rounding or skips(before, x.shape.element_type, i.shape.element_type)):
            break
        x = x.operands[0]
    return None if x is i.operands[0] else x
