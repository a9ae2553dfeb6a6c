"""latency-hiding-scheduler: other work runs while asynchronous ops move data."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron import targets
from heron.analysis.cost.async_pairs import Times, is_start, run_time, times_of
from heron.analysis.graph.call_graph import CallGraph
from heron.analysis.graph.dataflow import Dataflow
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.module import Module
from heron.passes.copies.flatten_call_graph import FlattenCallGraph
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.schedule.memory_scheduler import MemoryScheduler
from heron.passes.schedule.model.overlap import Choice, overlapped
from heron.passes.schedule.model.peaks import peak
from heron.passes.schedule.model.steps import Places, Steps, steps_of
from heron.records import dataclass
from heron.targets import Target

if TYPE_CHECKING:
    from collections.abc import Mapping

_MICRO = 1e6


@register
@dataclass(frozen=True)
class LatencyHidingScheduler(Pass):
    """Reorders scheduled computations so that other work runs between the start and the done of asynchronous ops.

    The cost model says how long each op runs. Orders are built from the end (see `overlap`), dones late and starts
    early, as far as ``memory_limit`` bytes of intermediate values allow (0: what the target's memory leaves, a
    twentieth kept free). At most so many ops of a kind are under way at once: ``collectives``, ``permutes``,
    ``transfers`` (send and recv), ``copies``, ``streams`` (computations run beside the main one). An order that is
    estimated to take less time replaces the one there is; control edges are kept.

    HloModule example, is_scheduled=true

    s = (f32[1048576], f32[1048576], u32[]) copy-start(f32[1048576] x)
    d = f32[1048576] copy-done(s)
    e = f32[1048576] exponential(f32[1048576] y)
    ROOT r = f32[1048576] add(d, e)
    ->
    HloModule example, is_scheduled=true

    s = (f32[1048576], f32[1048576], u32[]) copy-start(x)
    e = f32[1048576] exponential(y)
    d = f32[1048576] copy-done(s)
    ROOT r = f32[1048576] add(d, e)
    """

    name = "latency-hiding-scheduler"
    constraints = (
        Constraint("memory-scheduler", "latency-hiding-scheduler", "it improves on an order that needs little memory"),
    )
    memory_limit: int = 0
    collectives: int = 1
    permutes: int = 1
    transfers: int = 2
    copies: int = 2
    streams: int = 1

    def run(self, module: Module, ctx: PassContext) -> bool:
        if not any(is_start(i) for c in module.non_fusion_computations() for i in c.instructions):
            return False
        changed = FlattenCallGraph().run(module, ctx)
        if changed or module.schedule is None:
            changed |= MemoryScheduler().run(module, ctx)
        target = ctx.target or targets.get("sm_90")
        graph = CallGraph(module)
        flow = Dataflow(module, graph)
        places = Places(flow)
        slack = self._slack(module, graph, flow, places, target)
        peaks: dict[Computation, int] = {}
        for c in reversed(graph.sequential()):
            steps = steps_of(c, flow, places, peaks)
            assert module.schedule is not None
            number = {i: n for n, i in enumerate(steps.instructions)}
            order = [number[i] for i in module.schedule[c] if i in number]
            before = peaks[c] = peak(steps, order).all
            times = times_of(steps.instructions, module, target, self._lanes())
            if not times.by_start:
                continue
            found, choices = overlapped(steps, times, order, before + slack)
            more = peak(steps, found).all - before
            if self._is_better(ctx, steps, times, order, found, (before, more, slack)):
                _tell(ctx, steps, times, order, found, choices)
                module.schedule[c] = steps.expand(found)
                peaks[c] = before + more
                slack -= max(0, more) if c is not module.entry else 0
                changed = True
        return changed

    def _lanes(self) -> Mapping[str, int]:
        return {
            "collective": self.collectives,
            "permute": self.permutes,
            "transfer": self.transfers,
            "copy": self.copies,
            "stream": self.streams,
        }

    def _slack(self, module: Module, graph: CallGraph, flow: Dataflow, places: Places, target: Target) -> int:
        """Bytes that the schedule there is leaves free of the limit."""
        peaks: dict[Computation, int] = {}
        assert module.schedule is not None
        for c in reversed(graph.sequential()):
            steps = steps_of(c, flow, places, peaks)
            number = {i: n for n, i in enumerate(steps.instructions)}
            peaks[c] = peak(steps, [number[i] for i in module.schedule[c] if i in number]).all
        limit = self.memory_limit
        if not limit:
            arguments = sum(p.shape.total_bytes for p in module.entry.parameters)
            limit = target.memory_bytes * 19 // 20 - arguments
        return max(0, limit - peaks[module.entry])

    def _is_better(
        self,
        ctx: PassContext,
        steps: Steps,
        times: Times,
        order: list[int],
        found: list[int],
        memory: tuple[int, int, int],
    ) -> bool:
        before, after = run_time(order, times)[0], run_time(found, times)[0]
        held, more, slack = memory
        reason = f"about {_time(before)} as it was, {_time(after)} with transfers hidden"
        if after >= before:
            reason = f"the order stays: {_time(before)}, and no other hides more" if times.by_start else ""
        elif more > slack:
            reason += f", but that needs {held + more} B, {more - slack} B beyond the memory limit"
        else:
            reason += f"; {held} B held at most before, {held + more} B after"
        return bool(
            ctx.decide(
                after < before and more <= slack,
                reason,
                subject=steps.computation.name,
                cost_before=before * _MICRO,
                cost_after=after * _MICRO,
            ).ok
        )


def _tell(
    ctx: PassContext, steps: Steps, times: Times, order: list[int], found: list[int], choices: list[Choice]
) -> None:
    """A decision for every pair, and for every step that was taken out of turn."""
    names = [i.name for i in steps.instructions]
    place = {n: k for k, n in enumerate(found)}
    waited, before = run_time(found, times)[1], run_time(order, times)[1]
    for pair in times.by_start.values():
        between = place[pair.done] - place[pair.start] - 1
        hidden = pair.seconds - waited[pair.done]
        text = f"{between} steps run while it moves data on '{pair.resource}': "
        ctx.decide(
            hidden > 0,
            text + f"{_time(max(0.0, hidden))} of {_time(pair.seconds)} are hidden",
            subject=names[pair.start],
            object=names[pair.done],
            cost_before=before[pair.done] * _MICRO,
            cost_after=waited[pair.done] * _MICRO,
        )
    for choice in choices:
        taken, other = names[choice.taken], names[choice.other]
        ctx.decide(True, f"behind {other}: " + choice.reason.format(taken, other), subject=taken, object=other)


def _time(seconds: float) -> str:
    return f"{seconds * _MICRO:.1f} us"
