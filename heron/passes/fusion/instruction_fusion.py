"""instruction-fusion: producers go into the kernels of their consumers."""

from __future__ import annotations

from heron.analysis.cost.code_size import code_limit
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.fusion.model.build import fuse
from heron.passes.fusion.model.plan import Limits, Planner
from heron.passes.fusion.model.traffic_model import MACHINES
from heron.records import dataclass


@register
@dataclass(frozen=True)
class InstructionFusion(Pass):
    """Fuses elementwise ops and data movement into the kernels that read them, in every computation that runs.

    A producer disappears into all its readers when recomputing it there costs less than writing and reading it; reduce,
    reduce-window, scatter and dynamic-update-slice take producers in but stay roots. Every producer considered leaves a
    decision with both costs in bytes of memory traffic. On a CPU small products are computed by kernels, too.
    ``target`` ("cpu" or "gpu") says how work, bytes and launches compare; by default the machine that is compiled for
    does.

    a = f32[8] multiply(f32[8] x, f32[8] y)
    ROOT b = f32[8] add(a, y)
    ->
    body {
      p = f32[8] parameter(0)
      q = f32[8] parameter(1)
      m = f32[8] multiply(p, q)
      ROOT r = f32[8] add(m, q)
    }
    ROOT f = f32[8] fusion(x, y), kind=kLoop, calls=body
    """

    name = "instruction-fusion"
    target: str = ""
    max_inputs: int = 32
    max_instructions: int = 1500

    def run(self, module: Module, ctx: PassContext) -> bool:
        machine = MACHINES[self.target or getattr(ctx.target, "kind", "cpu")]
        masks = ctx.target is None or ctx.target.has_masks
        limits = Limits(self.max_inputs, self.max_instructions, code=code_limit(ctx.target), masks=masks)

        def tell(
            ok: bool, why: str, producer: Instruction, into: str, before: float | None, after: float | None
        ) -> None:
            if producer.opcode != "constant":
                ctx.decide(ok, why, subject=producer.name, object=into, cost_before=before, cost_after=after)

        changed = False
        for c in module.non_fusion_computations():
            # readers first: what they compute themselves must still be there when they are built
            for group in reversed(Planner(machine, limits, tell).plan(c)):
                alone = len(group.evaluations) == 1 and group.root.opcode != "dot"
                if not alone and group.root.parent is not None:
                    if not ctx.may_fire("fuse", "instruction_fusion.py", group.root):
                        return changed
                    ctx.trace.became[group.root.name] = fuse([group.root], group.evaluations).name
                    changed = True
        return changed
