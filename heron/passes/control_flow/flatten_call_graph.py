"""flatten-call-graph: every loop, branch and call has computations of its own."""

from __future__ import annotations

from dataclasses import dataclass

from heron.hlo import facts
from heron.hlo.ir.computation import Computation, remap_calls
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register

#: ops that run a computation on whole values; those that apply one to elements may share it
_CALLERS = facts.having(Trait.CONTROL_FLOW) - facts.having(Trait.ASYNC)


@register
@dataclass(frozen=True)
class FlattenCallGraph(Pass):
    """Copies computations that several loops, branches or calls run, so that each has its own.

    Values in a shared body would have to be split over devices in one way for all callers. Reducers, comparators and
    the like, which are applied to elements, stay shared.

    twice {
      p = f32[4] parameter(0)
      ROOT s = f32[4] add(p, p)
    }

    a = f32[4] call(f32[4] x), to_apply=twice
    ROOT b = f32[4] call(a), to_apply=twice
    ->
    twice {
      p = f32[4] parameter(0)
      ROOT s = f32[4] add(p, p)
    }

    again {
      q = f32[4] parameter(0)
      ROOT t = f32[4] add(q, q)
    }

    a = f32[4] call(x), to_apply=twice
    ROOT b = f32[4] call(a), to_apply=again
    """

    name = "flatten-call-graph"

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        taken: set[Computation] = set()
        work = [module.entry]
        while work:  # callers before callees: a copy's own callees are copied in their turn
            for i in work.pop().instructions:
                if i.opcode in _CALLERS:
                    changed |= _own(module, i, taken)
                    work += dict.fromkeys(i.called)
        return changed


def _own(module: Module, i: Instruction, taken: set[Computation]) -> bool:
    """Let `i` call copies of those computations that are another's already. Whether there were any."""
    shared = [c for c in dict.fromkeys(i.called) if c in taken]
    copies = {c: module.add_computation(c.clone()) for c in shared}
    if copies:
        remap_calls(i, copies)
        i.mark_changed()
    taken.update(i.called)
    return bool(copies)
