"""dce: what nobody uses goes."""

from __future__ import annotations

from heron.hlo.ir.module import Module
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class Dce(Pass):
    """Removes instructions whose value nobody uses, and computations nobody calls.

    Parameters stay, since callers pass them, and so does whatever has a side effect, itself or in what it calls.

    e = f32[4] exponential(f32[4] x)
    unused = f32[4] negate(e)
    ROOT r = f32[4] add(x, x)
    ->
    ROOT r = f32[4] add(x, x)
    """

    name = "dce"

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.computations:
            before = len(c)
            for i in c.instructions:
                if not i.users:
                    c.remove_dead_from(i)
            changed |= len(c) != before
        return module.remove_unused_computations() or changed
