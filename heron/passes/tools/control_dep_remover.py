"""control-dep-remover: only operands order instructions."""

from __future__ import annotations

from heron.hlo.ir.module import Module
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ControlDepRemover(Pass):
    """Cuts all control edges.

    They say in which order one compiler wants things done; another one that is to compile the program afresh must be
    free to choose. Orders that matter for values are told by operands and tokens.

    a = f32[4] negate(f32[4] x)
    b = f32[4] exponential(x), control-predecessors={a}
    ROOT r = f32[4] add(a, b)
    ->
    a = f32[4] negate(x)
    b = f32[4] exponential(x)
    ROOT r = f32[4] add(a, b)
    """

    name = "control-dep-remover"

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for i in module.instructions():
            if i.control_predecessors or i.control_successors:
                i.control_predecessors, i.control_successors = [], []
                changed = True
        return changed
