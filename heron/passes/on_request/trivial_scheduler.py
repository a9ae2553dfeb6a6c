"""trivial-scheduler: operands first, else in the order of the text."""

from __future__ import annotations

from heron.hlo.ir.module import Module
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class TrivialScheduler(Pass):
    """Orders what has no order yet: operands before users, otherwise as the text has it. A schedule there is stays.

    Costs nothing and keeps a program near its text, where `memory-scheduler` would look for the least memory.

    HloModule example

    a = f32[4] negate(f32[4] x)
    ROOT r = f32[4] exponential(a)
    ->
    HloModule example, is_scheduled=true

    ROOT r = f32[4] exponential(a)
    """

    name = "trivial-scheduler"

    def run(self, module: Module, ctx: PassContext) -> bool:
        if module.is_scheduled:
            return False
        module.set_schedule({c: c.post_order() for c in module.non_fusion_computations()})
        return True
