"""schedule-postprocessing: transfers begin as soon, and are waited for as late, as the program allows."""

from __future__ import annotations

from collections.abc import Callable

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import all_ops
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass

_ENDS = frozenset(op.done for op in all_ops() if op.done)


@register
@dataclass(frozen=True)
class SchedulePostprocessing(Pass):
    """Moves starts of asynchronous ops up to what they need, and dones down to who needs them; the rest stays in order.

    Costs next to nothing, and asks neither time nor memory: latency-hiding-scheduler does.

    HloModule example, is_scheduled=true

    e = f32[4] exponential(f32[4] y)
    s = (f32[4], f32[4], u32[]) copy-start(f32[4] x)
    d = f32[4] copy-done(s)
    n = f32[4] negate(e)
    ROOT r = f32[4] add(d, n)
    ->
    HloModule example, is_scheduled=true

    s = (f32[4], f32[4], u32[]) copy-start(x)
    e = f32[4] exponential(y)
    n = f32[4] negate(e)
    d = f32[4] copy-done(s)
    ROOT r = f32[4] add(d, n)
    """

    name = "schedule-postprocessing"
    constraints = (
        Constraint("memory-scheduler", "schedule-postprocessing", "it moves ops in an order that is there"),
        Constraint("schedule-postprocessing", "latency-hiding-scheduler", "that one looks at time and memory"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c, order in (module.schedule or {}).items():
            if not any(i.op.done for i in order):
                continue
            sooner = _bubbled(order, lambda i: bool(i.op.done), _needs)
            later = _bubbled(sooner[::-1], lambda i: i.opcode in _ENDS, _needed_by)[::-1]
            if order[-1] is c.root:
                later.remove(c.root)
                later.append(c.root)
            if later != order:
                module.schedule[c] = later  # type: ignore[index]
                changed = True
        return changed


def _needs(i: Instruction) -> list[Instruction]:
    return [*i.operands, *i.control_predecessors]


def _needed_by(i: Instruction) -> list[Instruction]:
    return [*i.users, *i.control_successors]


def _bubbled(
    order: list[Instruction], moves: Callable[[Instruction], bool], bound: Callable[[Instruction], list[Instruction]]
) -> list[Instruction]:
    """`order` with each instruction that `moves` as early as what it is bound to, ahead of it, and parameters allow."""
    ahead: dict[Instruction | None, list[Instruction]] = {}
    place = {i: n for n, i in enumerate(order)}
    for i in order:
        if moves(i):
            last = max((b for b in bound(i)), key=lambda b: place[b], default=None)
            ahead.setdefault(last, []).append(i)
    found: list[Instruction] = []
    stack: list[Instruction] = []
    gone = {i for some in ahead.values() for i in some}
    for start in (*ahead.get(None, ()), *(i for i in order if i not in gone)):
        stack = [start]
        while stack:
            i = stack.pop()
            found.append(i)
            stack += reversed(ahead.get(i, ()))
    return found
