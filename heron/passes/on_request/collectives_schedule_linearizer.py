"""collectives-schedule-linearizer: all devices do their collectives in one order."""

from __future__ import annotations

from itertools import pairwise

from heron.analysis.graph.reachability import Reachability
from heron.hlo.facts import done_of
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class CollectivesScheduleLinearizer(Pass):
    """Orders the collectives of each computation by control edges, each after the one before it.

    Devices that were compiled for apart might else choose different orders, and wait for each other forever.

    HloModule example, replica_count=2

    p = f32[8] all-gather(f32[4] x), dimensions={0}
    q = f32[6] all-gather(f32[3] y), dimensions={0}
    ROOT r = (f32[8], f32[6]) tuple(p, q)
    ->
    HloModule example, replica_count=2

    p = f32[8] all-gather(x), dimensions={0}
    q = f32[6] all-gather(y), dimensions={0}, control-predecessors={p}
    ROOT r = (f32[8], f32[6]) tuple(p, q)
    """

    name = "collectives-schedule-linearizer"
    constraints = (
        Constraint("all-reduce-combiner", "collectives-schedule-linearizer", "what is ordered is not combined"),
        Constraint("collectives-schedule-linearizer", "memory-scheduler", "that keeps the order"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            found = [i for i in c.post_order() if _begins(i)]
            if len(found) > 1 and _order(c, found):
                ctx.decide(True, f"{len(found)} collectives in one order", subject=c.name)
                changed = True
        return changed


def _begins(i: Instruction) -> bool:
    """Whether `i` is a collective, or begins one."""
    if i.opcode == "async-start":
        return Trait.COLLECTIVE in i.calls.root.op.traits
    return Trait.COLLECTIVE in i.op.traits and i.opcode not in set(done_of().values())


def _order(c: Computation, found: list[Instruction]) -> bool:
    changed, reach = False, Reachability(c)
    for before, after in pairwise(found):
        end = next((u for u in before.users if u.opcode == done_of().get(before.opcode)), before)
        if reach.connected(end, after):
            continue
        after.add_control_predecessor(end)
        reach.add_edge(end, after)
        changed = True
    return changed
