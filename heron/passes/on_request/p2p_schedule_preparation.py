"""p2p-schedule-preparation: transfers between devices follow each other in one order."""

from __future__ import annotations

from itertools import pairwise

from heron.analysis.graph.reachability import Reachability
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.module import Module
from heron.passes.collectives.model.transfers import Chain, chains_of
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class P2pSchedulePreparation(Pass):
    """Orders receive, send and their ends within each transfer between devices, and each transfer after the one before.

    Devices that wait for a transfer which another one begins only behind a transfer of theirs would wait forever. A
    transfer is the receive and the send of one channel. Those whose halves stand in different computations, as in
    loops that begin one for their next round, are left as they are.

    HloModule example, num_partitions=2

    t = token[] after-all()
    r = (f32[4], u32[], token[]) recv(t), channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs={{0,1}}}
    s = (f32[4], u32[], token[]) send(f32[4] x, t), channel_id=1,
    frontend_attributes={_xla_send_recv_source_target_pairs={{0,1}}}
    d = (f32[4], token[]) recv-done(r), channel_id=1
    e = token[] send-done(s), channel_id=1
    ROOT g = f32[4] get-tuple-element(d), index=0
    ->
    ...
    """

    name = "p2p-schedule-preparation"
    constraints = (
        Constraint("collective-permute-decomposer", "p2p-schedule-preparation", "that makes transfers"),
        Constraint("p2p-schedule-preparation", "memory-scheduler", "that keeps the order"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            chains = chains_of(c)
            if chains and _order(c, chains):
                ctx.decide(True, f"{len(chains)} transfers in one order", subject=c.name)
                changed = True
        return changed


def _order(c: Computation, chains: list[Chain]) -> bool:
    changed, reach = False, Reachability(c)
    wanted = [pair for chain in chains for pair in pairwise(chain)]
    wanted += [(before[-1], after[0]) for before, after in pairwise(chains)]
    for before, after in wanted:
        if reach.connected(before, after):
            continue
        after.add_control_predecessor(before)
        reach.add_edge(before, after)
        changed = True
    return changed
