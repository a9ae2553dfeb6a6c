"""defuser: fusions become the instructions they are made of."""

from __future__ import annotations

from heron.hlo.ir.module import Module
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import inline
from heron.records import dataclass


@register
@dataclass(frozen=True)
class Defuser(Pass):
    """Replaces every fusion by the instructions of its body, fusions within fusions too.

    A program as it was before fusion can be compared with another compiler's, or run where fusions are unknown.

    body {
      p = f32[4] parameter(0)
      e = f32[4] exponential(p)
      ROOT n = f32[4] negate(e)
    }

    ROOT f = f32[4] fusion(f32[4] x), kind=kLoop, calls=body
    ->
    e = f32[4] exponential(x)
    ROOT n = f32[4] negate(e)
    """

    name = "defuser"

    def run(self, module: Module, ctx: PassContext) -> bool:
        fusions = [i for c in module.post_order() for i in c.instructions if i.opcode == "fusion"]
        for i in fusions:  # inner ones first, so each body is copied once
            if i.parent is None:  # only what is open already had needed it
                continue
            inline(i, i.attrs["calls"], list(i.operands))
        if fusions:
            module.remove_unused_computations()
        return bool(fusions)
