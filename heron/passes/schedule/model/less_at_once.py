"""Kernels that were joined are divided again where a program holds most, if that saves memory and costs little."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from heron import targets
from heron.analysis.cost.estimate import estimate
from heron.analysis.cost.kernel import kernel_cost
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.context import PassContext
from heron.passes.schedule.model.divide import Divided
from heron.passes.schedule.model.peaks import course, tops
from heron.passes.schedule.model.plan import LEAST, Plan
from heron.passes.schedule.model.splits import Candidate, candidates, hazards_of
from heron.targets import Target

#: one part in so many of the bytes needed is worth a division
_WORTH = 24
#: parts of the memory to save for the same part of the time
_RATE = 2.4
#: divisions that are tried without success before that is enough
_TRIES = 3
#: seconds that a CPU takes to start one more kernel, where no other thread gets a part of it
_START = 0.1e-6


def less_at_once(
    module: Module, plan: Plan, again: Callable[[], Plan], most: float, ctx: PassContext
) -> tuple[Plan, bool]:
    """The plan, or a better one of the module with kernels divided; whether some were.

    Args:
        again: plans the module anew.
        most: the part of a computation's time that divisions may take; one that saves less memory may take less.
    """
    target = ctx.target if isinstance(ctx.target, Target) else targets.get("cpu")
    refused, failures, divided, left = set[tuple[Instruction, frozenset[int]]](), 0, False, most
    while failures < _TRIES and plan.needed >= LEAST:
        found = [c for c in _found(plan) if c.gain * _WORTH >= plan.needed and (c.fusion, c.late) not in refused]
        if not found:
            break
        best = max(found, key=lambda c: c.gain)
        refused.add((best.fusion, best.late))
        why, better, spent = _tried(best, plan, again, left, target)
        name = best.fusion.name
        ctx.decide(better is not None, why, subject=name, cost_before=plan.needed, cost_after=(better or plan).needed)
        if better is None:
            failures += 1
            continue
        module.remove_computation(best.fusion.attrs["calls"])
        plan, divided, left = better, True, left - spent
    return plan, divided


def _found(plan: Plan) -> Iterator[Candidate]:
    """Divisions at the peak of the entry, and at those of the computations that run there."""
    hazards = hazards_of(plan.flow, plan.places)
    c, at = plan.flow.module.entry, plan.top[0]
    while True:
        steps, order = plan.steps[c], plan.orders[c]
        yield from candidates(steps, order, at, hazards)
        i = steps.instructions[order[at]]
        inner = max((k for k in i.called if plan.orders.get(k)), key=plan.peaks.__getitem__, default=None)
        if inner is None or i.opcode == "fusion":
            return
        c = inner
        at = tops(plan.steps[c], plan.orders[c], course(plan.steps[c], plan.orders[c]))[0]


def _tried(
    found: Candidate, plan: Plan, again: Callable[[], Plan], most: float, target: Target
) -> tuple[str, Plan | None, float]:
    """The plan with a kernel divided if that is better, why it is or not, and the part of the time it takes."""
    home = found.fusion.parent
    assert home is not None
    whole = _seconds([found.fusion], target)
    total = max(_seconds([i for i in plan.steps[home].instructions if i.opcode == "fusion" or not i.called], target))
    divided = Divided.of(found.fusion, found.late)
    compute, memory, once = (max(0.0, b - a) for a, b in zip(whole, _seconds(divided.parts, target), strict=True))
    # a kernel that computes for longer than it reads takes longer, too, if it reads more: not all of that is hidden
    extra = compute + max(memory, once) + _START
    told = f"{extra * 1e6:.3g} of {total * 1e6:.3g} µs more"
    if extra > total * min(most, found.gain / plan.needed / _RATE):
        divided.undo()
        return f"two kernels would take {told}", None, 0.0
    better = again()
    if (plan.needed - better.needed) * _WORTH < plan.needed:
        divided.undo()
        return f"two kernels hold {better.needed} B in place of {plan.needed} B", None, 0.0
    why = f"two kernels hold {better.needed} B in place of {plan.needed} B, for {told}"
    return why, better, extra / max(total, 1e-12)


def _seconds(steps: Sequence[Instruction], target: Target) -> tuple[float, float, float]:
    """The time they take to compute; to read and write; and to do so once with all that there is."""
    costs = [kernel_cost(i) for i in steps]
    found = [estimate(c, target) for c in costs]
    once = sum(c.distinct for c in costs) / target.memory_bandwidth
    return sum(e.compute for e in found), sum(e.memory for e in found), once
