"""Pass domain-verifier."""

from __future__ import annotations

from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.sharding import Sharding
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.sharding.model.domains import edge, edges, shardings_of, single
from heron.records import dataclass


@register
@dataclass(frozen=True)
class DomainVerifier(Pass):
    """Checks that a `domain` op stands wherever a value is read in another sharding, and that it names the two.

    It changes nothing, and raises SPMD005 for the first edge that is wrong. Values without a sharding fit everywhere.

    a = f32[8] parameter(0), sharding={devices=[2]<=[2]}
    d = f32[8] domain(a), domain={kind="sharding", entry={replicated}, exit={devices=[2]<=[2]}}
    ROOT r = f32[8] negate(d), sharding={replicated}
    ->
    a = f32[8] parameter(0), sharding={devices=[2]<=[2]}
    d = f32[8] domain(a), domain={kind="sharding", entry={replicated}, exit={devices=[2]<=[2]}}
    ROOT r = f32[8] negate(d), sharding={replicated}
    """

    name = "domain-verifier"
    constraints = (Constraint("domain-isolator", "domain-verifier", "it checks what the other one puts in"),)

    def run(self, module: Module, ctx: PassContext) -> bool:
        for c in module.non_fusion_computations():
            for e in edges(c):
                if e.crosses:
                    raise _wrong(e.user, e.value, e.made, e.read)
            for i in c.instructions:
                if i.opcode == "domain":
                    _check(i)
        return False


def _check(domain: Instruction) -> None:
    before, behind = shardings_of(domain)
    (value,) = domain.operands
    if value.sharding is not None and single(value.sharding) != before:
        raise _wrong(domain, value, single(value.sharding), before)
    for user in domain.users:
        if user.opcode != "domain" and user.sharding is not None:
            e = edge(user, user.operands.index(domain), behind, user.sharding)
            if e.crosses:
                raise _wrong(user, domain, behind, e.read)


def _wrong(user: Instruction, value: Instruction, made: Sharding, read: Sharding) -> HeronError:
    return HeronError(
        "SPMD005",
        f"'{value.name}' is {made}, and '{user.name}' reads it as {read}",
        where=str(user)[:200],
        why="between different shardings stands a domain op that names both",
        hint="run the pass domain-isolator",
    )
