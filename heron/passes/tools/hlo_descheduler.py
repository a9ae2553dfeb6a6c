"""hlo-descheduler: a program without an order of execution."""

from __future__ import annotations

from heron.hlo.ir.module import Module
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class HloDescheduler(Pass):
    """Forgets the schedule, so that passes may change the program and a scheduler may order it anew.

    HloModule example, is_scheduled=true

    a = f32[4] negate(f32[4] x)
    ROOT r = f32[4] exponential(a)
    ->
    HloModule example

    ROOT r = f32[4] exponential(a)
    """

    name = "hlo-descheduler"

    def run(self, module: Module, ctx: PassContext) -> bool:
        if not module.is_scheduled:
            return False
        module.clear_schedule()
        return True
