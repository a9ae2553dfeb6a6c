"""conditional-to-select: both branches and a choice, where branching is impossible."""

from __future__ import annotations

from heron.analysis.graph.call_graph import SEQUENTIAL
from heron.hlo.facts import is_call
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.control_flow.model.branches import select_branches
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ConditionalToSelect(Pass):
    """Replaces conditionals in computations that are applied to elements by selects between the branches' results.

    The computation of a map, reduction, sort or scatter is part of a kernel, where all elements go the same way through
    the code. Conditionals of the program itself stay, and those with side effects.

    yes {
      p = f32[] parameter(0)
      ROOT e = f32[] exponential(p)
    }

    no {
      p = f32[] parameter(0)
      ROOT n = f32[] negate(p)
    }

    each {
      x = f32[] parameter(0)
      zero = f32[] constant(0)
      t = pred[] compare(x, zero), direction=GT
      ROOT r = f32[] conditional(t, x, x), branch_computations={yes, no}
    }

    ROOT r = f32[4] map(f32[4] x), dimensions={0}, to_apply=each
    ->
    each {
      x = f32[] parameter(0)
      zero = f32[] constant(0)
      t = pred[] compare(x, zero), direction=GT
      e = f32[] exponential(x)
      n = f32[] negate(x)
      ROOT s = f32[] select(t, e, n)
    }

    ROOT r = f32[4] map(x), dimensions={0}, to_apply=each
    """

    name = "conditional-to-select"
    looks_for = frozenset({"conditional"})

    def run(self, module: Module, ctx: PassContext) -> bool:
        embedded = _embedded(module)
        changed = False
        for c in module.post_order():  # what branches themselves hold first
            for i in c.instructions if c in embedded else ():
                if i.opcode == "conditional" and i.parent is c and not i.has_side_effect:
                    select_branches(i)
                    changed = True
        if changed:
            module.remove_unused_computations()
        return changed


def _embedded(module: Module) -> set[Computation]:
    """Computations that run as part of one instruction, and all they call."""
    if not any(i.opcode == "conditional" for i in module.instructions()):
        return set()
    work = [c for i in module.instructions() if _applies(i) for c in i.called]
    found: set[Computation] = set()
    while work:
        c = work.pop()
        if c not in found:
            found.add(c)
            work += [callee for i in c.instructions for callee in i.called]
    return found


def _applies(i: Instruction) -> bool:
    return i.opcode not in SEQUENTIAL and not is_call(i) and i.opcode != "custom-call"
