"""dynamic-dimension-inference: which dimension has which size, written beside the instructions."""

from __future__ import annotations

from heron.analysis.dynamic_sizes import DynamicSizes, dynamic_places
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class DynamicDimensionInference(Pass):
    """Writes the size of every dynamic dimension beside its instruction, as a formula of where it comes from.

    ``%x[1]`` is the size dimension 1 of `x` comes with, ``%n`` a number of the program. A condition that must hold for
    the sizes to fit, and does not follow from the program, is noted in the trace: ``dynamic-padder`` checks it.
    `dynamic-padder` begins with the same, so no pipeline has it: it shows what is known.

    a = f32[<=8,4] set-dimension-size(f32[8,4] x, s32[] n), dimensions={0}
    ROOT r = f32[<=16,4] concatenate(a, f32[<=8,4] y), dimensions={0}
    ->
    y = f32[<=8,4] parameter(2), frontend_attributes={dynamic_sizes="0: %y[0]"}
    a = f32[<=8,4] set-dimension-size(x, n), dimensions={0}, frontend_attributes={dynamic_sizes="0: %n"}
    ROOT r = f32[<=16,4] concatenate(a, y), dimensions={0}, frontend_attributes={dynamic_sizes="0: %y[0] + %n"}
    """

    name = "dynamic-dimension-inference"
    constraints = (
        Constraint("dynamic-dimension-inference", "dynamic-padder", "after the padder no dimension is dynamic"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        found = DynamicSizes(module)
        changed = False
        for c in module.computations:
            for i in c.instructions:
                changed |= _annotate(i, _text(found, i))
            for check in found.checks.get(c, ()):
                ctx.note(f"sizes fit only if {check}")
        return changed


_NAME = "dynamic_sizes"


def _text(found: DynamicSizes, i: Instruction) -> str:
    """``0: %n, {1}2: 3``: the part of a tuple, the dimension, its size."""
    sizes = found.of(i)
    places = [p for p in dynamic_places(i.shape) if p in sizes]
    return ", ".join(f"{_part(index)}{d}: {sizes[index, d]}" for index, d in places)


def _part(index: tuple[int, ...]) -> str:
    return "{" + ",".join(map(str, index)) + "}" if index else ""


def _annotate(i: Instruction, text: str) -> bool:
    attributes = i.extras.get("frontend_attributes", {})
    if attributes.get(_NAME, "") == text:
        return False
    others = {name: value for name, value in attributes.items() if name != _NAME}
    i.extras["frontend_attributes"] = {**others, _NAME: text} if text else others
    if not i.extras["frontend_attributes"]:
        del i.extras["frontend_attributes"]
    return True
