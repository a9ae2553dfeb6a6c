"""computation-deduplicator: equal computations become one."""

from __future__ import annotations

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.fingerprint import digests
from heron.hlo.ir.module import Module
from heron.hlo.tools.compare import equal_computations
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ComputationDeduplicator(Pass):
    """Lets all callers of equal computations call one of them, so that it is optimised and compiled once.

    Equal are computations with the same instructions, layouts and shardings, which call equal ones. Bodies of fusions
    stay, as each belongs to its fusion.

    first {
      p = f32[4] parameter(0)
      ROOT e = f32[4] exponential(p)
    }

    second {
      q = f32[4] parameter(0)
      ROOT e = f32[4] exponential(q)
    }

    a = f32[4] call(f32[4] x), to_apply=first
    ROOT b = f32[4] call(a), to_apply=second
    ->
    a = f32[4] call(x), to_apply=first
    ROOT b = f32[4] call(a), to_apply=first
    """

    name = "computation-deduplicator"
    aliases = ("subcomputation-unification",)

    def run(self, module: Module, ctx: PassContext) -> bool:
        bodies = {i.attrs["calls"] for i in module.instructions() if i.opcode == "fusion"}
        callees = [c for c in module.post_order() if c is not module.entry]
        first: dict[str, Computation] = {}
        same: dict[Computation, Computation] = {}
        for c, digest in digests(callees).items():
            if c in bodies:
                continue
            other = first.setdefault(digest, c)
            if other is not c and equal_computations(other, c):
                same[c] = other
        if same:
            module.replace_computations(same)
        return bool(same)
