"""Pass domain-remover."""

from __future__ import annotations

from collections import defaultdict

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.sharding import Sharding
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.sharding.model.domains import shardings_of
from heron.records import dataclass


@register
@dataclass(frozen=True)
class DomainRemover(Pass):
    """Replaces `domain` ops by their operand; values between them that have no sharding get that of their domain.

    A domain is a set of values that are connected without a `domain` op. Values that passes made there have no
    sharding yet. Where the ops around a domain disagree, the values stay without.

    a = f32[8] parameter(0), sharding={devices=[2]<=[2]}
    d = f32[8] domain(a), domain={kind="sharding", entry={replicated}, exit={devices=[2]<=[2]}}
    ROOT r = f32[8] negate(d)
    ->
    a = f32[8] parameter(0), sharding={devices=[2]<=[2]}
    ROOT r = f32[8] negate(a), sharding={replicated}
    """

    name = "domain-remover"
    constraints = (Constraint("domain-isolator", "domain-remover", "it removes what the other one puts in"),)

    def run(self, module: Module, ctx: PassContext) -> bool:
        return any([_remove(c) for c in module.non_fusion_computations()])


def _remove(c: Computation) -> bool:
    domains = [i for i in c.instructions if i.opcode == "domain"]
    if not domains:
        return False
    home = _homes(c)
    stated: dict[Instruction, set[Sharding]] = defaultdict(set)
    for d in domains:
        before, behind = shardings_of(d)
        stated[home[d.operands[0]]].add(before)
        for user in d.users:
            stated[home[user]].add(behind)
    for i in c.instructions:
        of = stated.get(home[i], set())
        if i.opcode != "domain" and "sharding" not in i.extras and len(of) == 1:
            (sharding,) = of
            if not sharding.is_tuple or i.shape.is_tuple:
                i.sharding = sharding.spread(i.shape)
    for d in domains:
        d.replace_uses_with(d.operands[0])
        d.drop_control_edges()
        c.remove(d)
    return True


def _homes(c: Computation) -> dict[Instruction, Instruction]:
    """For each instruction one of its domain, the same for all in it."""
    parent = {i: i for i in c.instructions}

    def find(i: Instruction) -> Instruction:
        while parent[i] is not i:
            parent[i] = i = parent[parent[i]]
        return i

    for i in parent:
        for o in i.operands:
            if i.opcode != "domain" and o.opcode != "domain":
                parent[find(o)] = find(i)
    return {i: find(i) for i in parent}
