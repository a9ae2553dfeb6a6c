"""layout-assignment: every array gets a layout; the entry keeps the ones its callers see."""

from __future__ import annotations

from dataclasses import dataclass

from heron.hlo.module import Module
from heron.hlo.shape import Shape
from heron.passes.base import Pass
from heron.passes.context import PassContext
from heron.passes.registry import register


@register
@dataclass(frozen=True)
class LayoutAssignment(Pass):
    """Gives every array of every computation the default row-major layout, the module's entry layout included.

    The kernels and library calls all work on row-major arrays, so an instruction's result lies in memory as its
    dimensions are written, whatever layouts the program came with.

    ROOT t = f32[2,3]{0,1} transpose(f32[3,2]{1,0} x), dimensions={1,0}
    ->
    ROOT t = f32[2,3]{1,0} transpose(x), dimensions={1,0}
    """

    name = "layout-assignment"

    def run(self, module: Module, ctx: PassContext) -> bool:
        new: dict[Shape, Shape] = {}

        def default(shape: Shape) -> Shape:
            found = new.get(shape)
            if found is None:
                found = new[shape] = shape.with_default_layout()
            return found

        changed = False
        for i in module.instructions():
            shape = default(i.shape)
            if shape is not i.shape:
                i.shape = shape
                i.touch()
                changed = True
        if module.entry_layout is not None:
            parameters, result = module.entry_layout
            layout = tuple(map(default, parameters)), default(result)
            changed |= layout != module.entry_layout
            module.entry_layout = layout
        return changed
