"""marker-remover: custom calls that say where a value should be kept."""

from __future__ import annotations

from dataclasses import dataclass

from heron.hlo.library.markers import MARKERS
from heron.hlo.module import Module
from heron.passes.base import Pass
from heron.passes.context import PassContext
from heron.passes.registry import register


@register
@dataclass(frozen=True)
class MarkerRemover(Pass):
    """Replaces custom calls that only annotate their operand by it, each with the reason.

    Shardings are read before, where there are several devices. A value that was to wait in the host's memory stays
    where it is computed: that costs memory of the device and saves both ways.

    c = f32[8] custom-call(f32[8] x), custom_call_target="annotate_device_placement", custom_call_has_side_effect=true
    ROOT n = f32[8] negate(c)
    ->
    ROOT n = f32[8] negate(x)
    """

    name = "marker-remover"

    def run(self, module: Module, ctx: PassContext) -> bool:
        found = [i for i in module.instructions() if i.opcode == "custom-call" and i.custom_call_target in MARKERS]
        changed = False
        for i in found:
            home = i.parent
            if home is None or i.operands[0].shape.bare is not i.shape.bare:
                continue
            value = i.operands[0]
            home.replace(i, value)
            if i.parent is home:
                home.remove(i)
            why = f"{i.custom_call_target} changes no value: {MARKERS[i.custom_call_target]}"
            ctx.decide(True, why, subject=i.name, object=value.name)
            changed = True
        return changed
