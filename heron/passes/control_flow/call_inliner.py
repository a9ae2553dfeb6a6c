"""call-inliner: calls become the bodies they call."""

from __future__ import annotations

from dataclasses import dataclass

from heron.hlo.module import Module
from heron.passes.base import Pass
from heron.passes.building import inline
from heron.passes.context import PassContext
from heron.passes.registry import register


@register
@dataclass(frozen=True)
class CallInliner(Pass):
    """Replaces every `call` by a copy of the computation it calls.

    Callees come before callers, so a chain of calls is copied once per level and nothing is inlined twice. Calls marked
    ``inlineable="false"`` in their frontend attributes stay. Computations nobody calls any more are dropped.

    double {
      p = f32[4] parameter(0)
      ROOT twice = f32[4] add(p, p)
    }

    c = f32[4] call(f32[4] x), to_apply=double
    ROOT r = f32[4] negate(c)
    ->
    twice = f32[4] add(x, x)
    ROOT r = f32[4] negate(twice)
    """

    name = "call-inliner"

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.post_order():
            for i in c.instructions:
                if i.opcode == "call" and 'inlineable="false"' not in str(i.extras.get("frontend_attributes", "")):
                    inline(i, i.attrs["to_apply"], list(i.operands))
                    changed = True
        if changed:
            module.remove_unused_computations()
        return changed
