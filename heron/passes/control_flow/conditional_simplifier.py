"""conditional-simplifier: conditionals whose branch is known."""

from __future__ import annotations

from dataclasses import dataclass

from heron.hlo.computation import Computation
from heron.hlo.instruction import Instruction
from heron.hlo.module import Module
from heron.passes.base import Pass
from heron.passes.building import inline, splat_value
from heron.passes.canonical import Forms
from heron.passes.context import PassContext
from heron.passes.registry import register


@register
@dataclass(frozen=True)
class ConditionalSimplifier(Pass):
    """Inlines the branch of a conditional whose index is a constant or whose branches are all alike.

    yes {
      p = f32[] parameter(0)
      ROOT e = f32[] exponential(p)
    }

    no {
      p = f32[] parameter(0)
      ROOT n = f32[] negate(p)
    }

    t = pred[] constant(true)
    ROOT r = f32[] conditional(t, f32[] x, f32[] y), branch_computations={yes, no}
    ->
    ROOT e = f32[] exponential(x)
    """

    name = "conditional-simplifier"

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        forms = Forms()
        for c in module.computations_to_rewrite():
            for i in c.instructions:
                n = _known_branch(i, forms) if i.opcode == "conditional" else None
                if n is not None:
                    inline(i, i.branch_computations[n], [i.operands[1 + n]])
                    changed = True
        if changed:
            module.remove_unused_computations()
        return changed


def _known_branch(i: Instruction, forms: Forms) -> int | None:
    """The number of the branch that always runs, or of one that does what they all do."""
    branches: tuple[Computation, ...] = i.branch_computations
    value = splat_value(i.operands[0])
    if value is None:
        same = len(set(i.operands[1:])) == 1 and len({forms.of(c) for c in branches}) == 1
        return 0 if same else None
    if i.operands[0].shape.element_type.kind == "pred":
        return 0 if value else 1
    return int(value) if 0 <= int(value) < len(branches) else len(branches) - 1
