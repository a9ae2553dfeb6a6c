"""conditional-canonicalizer: branches that end in tuples."""

from __future__ import annotations

from heron.hlo.ir.module import Module
from heron.passes.control_flow.model.branches import give_tuples
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ConditionalCanonicalizer(Pass):
    """Lets every conditional give a tuple, made by a tuple instruction at the end of each branch.

    Passes that add results to conditionals, or take some away, then know one form only.

    yes {
      p = f32[4] parameter(0)
      ROOT e = f32[4] exponential(p)
    }

    no {
      p = f32[4] parameter(0)
      ROOT n = f32[4] negate(p)
    }

    ROOT r = f32[4] conditional(pred[] t, f32[4] x, x), branch_computations={yes, no}
    ->
    yes {
      p = f32[4] parameter(0)
      e = f32[4] exponential(p)
      ROOT a = (f32[4]) tuple(e)
    }

    no {
      p = f32[4] parameter(0)
      n = f32[4] negate(p)
      ROOT b = (f32[4]) tuple(n)
    }

    c = (f32[4]) conditional(t, x, x), branch_computations={yes, no}
    ROOT r = f32[4] get-tuple-element(c), index=0
    """

    name = "conditional-canonicalizer"
    looks_for = frozenset({"conditional"})

    def run(self, module: Module, ctx: PassContext) -> bool:
        found = [i for i in module.instructions() if i.opcode == "conditional"]
        changed = False
        for i in found:
            if not i.shape.is_tuple or any(c.root.opcode != "tuple" for c in i.branch_computations):
                give_tuples(i)
                changed = True
        return changed
