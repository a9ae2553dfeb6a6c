"""Pass domain-isolator."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.sharding.model.domains import edges, text
from heron.records import dataclass


@register
@dataclass(frozen=True)
class DomainIsolator(Pass):
    """Puts a `domain` op between values of different shardings, so that no pass joins what stands on its two sides.

    Users that read a value in the same sharding share the op. `domain-remover` takes the ops out again.

    a = f32[8] parameter(0), sharding={devices=[2]<=[2]}
    ROOT r = f32[8] negate(a), sharding={replicated}
    ->
    a = f32[8] parameter(0), sharding={devices=[2]<=[2]}
    d = f32[8] domain(a), domain={kind="sharding", entry={replicated}, exit={devices=[2]<=[2]}}
    ROOT r = f32[8] negate(d), sharding={replicated}
    """

    name = "domain-isolator"

    def run(self, module: Module, ctx: PassContext) -> bool:
        made: dict[tuple[Instruction, str], Instruction] = {}
        for c in module.non_fusion_computations():
            for e in [e for e in edges(c) if e.crosses]:
                key = e.value, str(e.read)
                if key not in made:
                    made[key] = c.add("domain", (e.value,), e.value.shape, like=e.value, domain=text(e.made, e.read))
                e.user.set_operand(e.n, made[key])
        return bool(made)
