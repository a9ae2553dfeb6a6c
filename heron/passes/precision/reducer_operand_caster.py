"""reducer-operand-caster: reductions hand their functions values of the types these take."""

from __future__ import annotations

from heron.hlo.facts import is_reduction
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import convert
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ReducerOperandCaster(Pass):
    """Converts arrays that are reduced in another type than their own, inside fusions too.

    Sums of bf16 in f32 may be written as a reduce of the bf16 array by a function of f32. Everything behind this pass
    finds one type in arrays, initial values and functions.

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    zero = f32[] constant(0)
    ROOT r = f32[4] reduce(bf16[4,8] x, zero), dimensions={1}, to_apply=sum
    ->
    wide = f32[4,8] convert(x)
    ROOT r = f32[4] reduce(wide, zero), dimensions={1}, to_apply=sum
    """

    name = "reducer-operand-caster"

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for i in [i for i in module.instructions() if is_reduction(i)]:
            for n, (x, element) in enumerate(zip(list(i.operands), _taken(i), strict=True)):
                if x.shape.element_type is not element.shape.element_type:
                    i.set_operand(n, convert(x, element.shape.element_type))
                    changed = True
        return changed


def _taken(i: Instruction) -> list[Instruction]:
    """The parameter of the function that an element of each operand goes to."""
    parameters = i.to_apply.parameters
    half = len(parameters) // 2
    return [*parameters[half:], *parameters[:half]]
