"""memory-scheduler: an order of execution that needs little memory."""

from __future__ import annotations

from dataclasses import dataclass

from heron.analysis.call_graph import CallGraph
from heron.analysis.dataflow import Dataflow
from heron.hlo.computation import Computation
from heron.hlo.instruction import Instruction
from heron.hlo.module import Module
from heron.passes.base import Pass
from heron.passes.context import PassContext
from heron.passes.copies.flatten_call_graph import FlattenCallGraph
from heron.passes.registry import register
from heron.passes.schedule.orders import dfs_order, eager, list_order, plain_order
from heron.passes.schedule.peak import costs, peak

ORDERS = {"dfs": dfs_order, "list": list_order, "post-order": plain_order}


@register
@dataclass(frozen=True)
class MemoryScheduler(Pass):
    """Sets `module.schedule`: for every computation that runs, the order with the least peak of bytes held.

    Three orders are made (depth first with the heaviest operand first, greedy by bytes freed, plain post-order), each
    also with what frees memory moved up, and the best is kept. Control edges are honoured. ``order`` names one of them
    to be taken without comparing with the others. Computations with several callers are cloned first.

    HloModule example

    a = f32[8] negate(f32[8] x)
    b = f32[8] exponential(a)
    ROOT c = f32[8] add(b, x)
    ->
    HloModule example, is_scheduled=true

    a = f32[8] negate(x)
    b = f32[8] exponential(a)
    ROOT c = f32[8] add(b, x)
    """

    name = "memory-scheduler"
    order: str = ""

    def run(self, module: Module, ctx: PassContext) -> bool:
        flattened = FlattenCallGraph().run(module, ctx)
        graph = CallGraph(module)
        flow = Dataflow(module, graph)
        peaks: dict[Computation, int] = {}
        schedule: dict[Computation, list[Instruction]] = {}
        for c in reversed(graph.sequential()):
            cost = costs(c, flow, peaks)
            tried: dict[str, tuple[int, list[Instruction]]] = {}
            for name, make in ORDERS.items():
                if self.order in ("", name):
                    order = make(c, cost)
                    tried[name] = peak(order, cost), order
                    sooner = eager(order, cost)
                    tried[f"{name}, frees first"] = peak(sooner, cost), sooner
            best = min(tried, key=lambda n: tried[n][0])
            peaks[c], schedule[c] = tried[best]
            told = ", ".join(f"{n} {bytes_} B" for n, (bytes_, _) in tried.items())
            ctx.decide(
                True,
                f"{best}: least peak of {told}",
                subject=c.name,
                cost_before=tried.get("post-order", tried[best])[0],
                cost_after=peaks[c],
            )
        changed = flattened or module.schedule != schedule
        module.schedule = schedule
        return changed
