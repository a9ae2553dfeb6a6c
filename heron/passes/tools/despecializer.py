"""despecializer: an optimised program as one that any compiler takes."""

from __future__ import annotations

from heron.hlo.ir.module import Module
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import get, register
from heron.records import dataclass

STEPS = ("hlo-descheduler", "control-dep-remover", "defuser", "bf16-mixed-precision-removal")


@register
@dataclass(frozen=True)
class Despecializer(Pass):
    """Undoes what was decided for one target: the schedule, control edges, fusions, products of mixed types.

    The result computes the same and can be compiled or evaluated elsewhere, to compare.

    body {
      p = bf16[4,8] parameter(0)
      q = f32[8,2] parameter(1)
      ROOT d = f32[4,2] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    }

    ROOT r = f32[4,2] fusion(bf16[4,8] x, f32[8,2] y), kind=kOutput, calls=body
    ->
    a = f32[4,8] convert(x)
    ROOT r = f32[4,2] dot(a, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    """

    name = "despecializer"

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for step in STEPS:
            changed |= ctx.run_pass(get(step), module)
        return changed
