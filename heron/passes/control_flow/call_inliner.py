"""call-inliner: calls become the bodies they call."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import inline
from heron.records import dataclass


@register
@dataclass(frozen=True)
class CallInliner(Pass):
    """Replaces every `call` by the computation it calls, a copy but for the last call of it.

    Callees come before callers, so a chain of calls is copied once per level and nothing is inlined twice. Calls marked
    ``inlineable="false"`` in their frontend attributes stay, and those that are started and awaited: what async-start
    starts is one op. Computations nobody calls any more are dropped.

    With ``single_call_site`` only computations with one caller are inlined, so the program does not grow.
    ``composites`` names composites to keep as calls, for passes that know them as a whole.

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
    looks_for = frozenset({"call"})
    single_call_site: bool = False
    composites: tuple[str, ...] = ()

    def run(self, module: Module, ctx: PassContext) -> bool:
        started = {c for i in module.instructions() if i.opcode == "async-start" for c in i.called}
        callers = [c for c in module.post_order() if c not in started]
        calls = [i for c in callers for i in c.instructions if i.opcode == "call" and self._goes(i)]
        if not calls:
            return False
        sites = {c: len(users) for c, users in module.callers().items()}
        if self.single_call_site:
            calls = [i for i in calls if sites[i.attrs["to_apply"]] == 1]
        for i in calls:
            if i.parent is None:  # only what is inlined already had needed it
                continue
            callee = i.attrs["to_apply"]
            if sites[callee] > 1:
                for c in (c for x in callee.instructions for c in x.called):
                    sites[c] += 1
            sites[callee] -= 1
            inline(i, callee, list(i.operands), moves=not sites[callee])
        if calls:
            module.remove_unused_computations()
        return bool(calls)

    def _goes(self, i: Instruction) -> bool:
        said = i.extras.get("frontend_attributes", {})
        if said.get("inlineable") == "false":
            return False
        return not (i.is_composite and said.get("composite.name") in self.composites)
