"""memory-scheduler: an order of execution that needs little memory."""

from __future__ import annotations

from functools import partial

from heron.analysis.graph.call_graph import CallGraph
from heron.analysis.graph.dataflow import Dataflow
from heron.buffers.assign import assign
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.copies.flatten_call_graph import FlattenCallGraph
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.schedule.model.around_peak import improve
from heron.passes.schedule.model.groups import grouped
from heron.passes.schedule.model.orders import dfs_order, eager, late, list_order, post_order
from heron.passes.schedule.model.peaks import Peaks, beyond, peak
from heron.passes.schedule.model.plan import LEAST, Plan
from heron.passes.schedule.model.steps import Places, Steps, steps_of
from heron.records import dataclass

#: a rival order is compared by buffers if it may save this share of the bytes held, one in so many
_WORTH = 32
ORDERS = {"dfs": dfs_order, "list": list_order, "post-order": post_order}


@register
@dataclass(frozen=True)
class MemoryScheduler(Pass):
    """Sets `module.schedule`: for every computation that runs, the order with the least peak of bytes held.

    Three orders are made (depth first with the heaviest operand first, greedy by bytes freed, plain post-order), each
    also with what frees memory moved up; the best is kept, and steps are moved away from its peak while that helps.
    Other values may lie in the memory of outputs until these begin. Where another order fits there better, both get
    buffers, and the one with less scratch memory is kept. Control edges are honoured. ``order`` names one of them to be
    taken without comparing with the others. ``cache``: where a computation makes more bytes than this, steps whose
    operands live on anyway wait until their results are needed, so that these are still in caches then (0: never).
    ``splits``: kernels with several outputs that hold too much at the peak are divided, the later of two computing what
    is needed later, for up to that part of a computation's estimated time. Nothing that takes long is computed twice.
    Computations with several callers are cloned first.

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
    cache: int = 0
    splits: float = 0.0

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed, before = FlattenCallGraph().run(module, ctx), module.schedule
        plan = self._plan(module)
        if self.splits and plan.needed >= LEAST and plan.has_several_outputs:
            from heron.passes.schedule.model.less_at_once import less_at_once  # for some programs alone

            plan, divided = less_at_once(module, plan, partial(self._plan, module), self.splits, ctx)
            changed |= divided
        for subject, plain, after, reason in plan.decisions:
            ctx.decide(True, reason, subject=subject, cost_before=plain, cost_after=after)
        module.schedule = plan.schedule
        return changed or before != plan.schedule

    def _plan(self, module: Module) -> Plan:
        """An order for every computation that runs."""
        graph = CallGraph(module)
        flow = Dataflow(module, graph)
        places = Places(flow)
        plan = Plan(flow, places)
        for c in reversed(graph.sequential()):
            steps = steps_of(c, flow, places, plan.peaks)
            order, plan.peaks[c], (plain, reason), rival = self._best(steps)
            plan.schedule[c] = steps.expand(order)
            if rival is not None:
                told, is_better = _compare(module, plan.schedule, c, steps.expand(rival))
                reason, order = reason + told, rival if is_better else order
            plan.steps[c], plan.orders[c] = steps, order
            plan.decisions.append((c.name, plain, plan.peaks[c], reason))
        return plan

    def _best(self, steps: Steps) -> tuple[list[int], int, tuple[int, str], list[int] | None]:
        """The order of least need, its bytes at the peak; those of the plain order, and the reason; another order that
        may need less scratch memory."""
        if all(len(steps.before[n]) == 1 for n in range(1, len(steps))) and _is_chain(steps):
            order = list(range(len(steps)))
            most = peak(steps, order).all
            return order, most, (most, f"the only order there is: {most} B"), None
        groups = grouped(steps)
        tried: dict[str, tuple[Peaks, list[int]]] = {}
        known: dict[tuple[int, ...], Peaks] = {}

        def attempt(name: str, order: list[int]) -> None:
            flat = groups.flatten(order)
            key = tuple(flat)
            if key not in known:
                known[key] = peak(steps, flat)
            tried[name] = known[key], flat

        for name, make in ORDERS.items():
            if self.order in ("", name):
                order = make(groups)
                attempt(name, order)
                attempt(f"{name}, frees first", eager(groups, order))
        best = min(tried, key=lambda n: tried[n][0].key)
        if not self.order:
            moved = improve(steps, *tried[best])
            if moved[1] is not tried[best][1]:
                best = f"{best}, moved from the peak"
                tried[best] = moved
        told = ", ".join(f"{n} {found.all} B" for n, (found, _) in tried.items())
        if self.cache and sum(steps.makes) > self.cache:
            order = late(steps, tried[best][1])
            found = peak(steps, order)
            if order != tried[best][1] and found.key <= tried[best][0].key:
                best = f"{best}, late"
                tried[best] = found, order
        found, order = tried[best]
        plain = tried["post-order"][0] if "post-order" in tried else found
        rival = _rival(steps, order, [flat for _, flat in tried.values()])
        return order, found.all, (plain.all, f"{best}: least peak of {told}"), rival


def _rival(steps: Steps, order: list[int], tried: list[list[int]]) -> list[int] | None:
    """An order whose values fit better into the memory of outputs, if that may save enough to be worth comparing."""
    if not steps.spare:
        return None
    needed, worth = beyond(steps, order), peak(steps, order).all // _WORTH
    if needed <= worth:
        return None
    found = min(tried, key=lambda flat: beyond(steps, flat))
    return found if needed - beyond(steps, found) > worth else None


def _compare(
    module: Module, schedule: dict[Computation, list[Instruction]], c: Computation, rival: list[Instruction]
) -> tuple[str, bool]:
    """Give buffers to both orders of the entry, the last computation to be scheduled, and keep the better one."""
    module.schedule = schedule
    plain = assign(module).temp_bytes
    own, schedule[c] = schedule[c], rival
    scratch = assign(module).temp_bytes
    if scratch >= plain:
        schedule[c] = own
        return f"; {plain} B of scratch memory, {scratch} B in another order", False
    return f"; but in another order {scratch} B of scratch memory instead of {plain} B", True


def _is_chain(steps: Steps) -> bool:
    return all(len(a) <= 1 for a in steps.after)
