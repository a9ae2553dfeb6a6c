"""flatten-call-graph: a copy of its own for every place that runs a computation as control flow."""

from __future__ import annotations

from heron.analysis.graph.call_graph import SEQUENTIAL
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.module import Module
from heron.passes.control_flow.model.ownership import copy_taken
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class FlattenCallGraph(Pass):
    """Clones computations that several whiles, conditionals or calls share, so that each has one caller.

    Buffers and schedules belong to a computation; two callers would have to agree on both.

    step {
      s = f32[] parameter(0)
      ROOT t = f32[] add(s, s)
    }
    a = f32[] call(f32[] p), to_apply=step
    ROOT b = f32[] call(a), to_apply=step
    ->
    step.1 {
      s.1 = f32[] parameter(0)
      ROOT t.1 = f32[] add(s.1, s.1)
    }
    a = f32[] call(p), to_apply=step
    ROOT b = f32[] call(a), to_apply=step.1
    """

    name = "flatten-call-graph"

    def run(self, module: Module, ctx: PassContext) -> bool:
        taken: set[Computation] = {module.entry}
        changed = False
        work = [module.entry]
        while work:
            for i in work.pop().instructions:
                if i.opcode in SEQUENTIAL:
                    before = i.called
                    copy_taken(i, taken)
                    changed |= i.called != before
                    work.extend(i.called)
        return changed
