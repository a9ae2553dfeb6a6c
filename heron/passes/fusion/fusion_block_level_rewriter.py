"""fusion-block-level-rewriter: fusions of rows whose tiles the model finds quicker become block kernels."""

from __future__ import annotations

from heron import targets
from heron.analysis.blocks.config import ROWS
from heron.analysis.blocks.cost import Plan
from heron.analysis.blocks.row_plans import row_plans, row_tiling
from heron.analysis.blocks.tiling import Refusal
from heron.analysis.cost.estimate import clock_of, estimate
from heron.analysis.cost.kernel import kernel_cost
from heron.analysis.fusion.iteration_space import joinable_outputs
from heron.hlo.facts import is_boundary
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.fusion.model.tiled import absent, has_form, is_row_reduce, keeps_rows, locked, programs
from heron.records import dataclass
from heron.targets import Target


@register
@dataclass(frozen=True)
class FusionBlockLevelRewriter(Pass):
    """Gives fusions with reductions to the emitter of block kernels where a model of the machine finds that quicker.

    A program of a block kernel holds rows whole, some side by side, with all that is computed of them. The tiles of the
    largest result are found by `analysis.blocks`, and with them those of every value; results once a row are stored
    beside it. The kernels of the other emitters are good at rows, too: a block kernel has to be quicker by the factor
    ``lead``, which is what the model may be wrong by. Both times are in the decision, in microseconds.

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    columns {
      p = f32[64,4096] parameter(0)
      zero = f32[] constant(0)
      t = f32[4096] reduce(p, zero), dimensions={0}, to_apply=sum
      b = f32[64,4096] broadcast(t), dimensions={1}
      ROOT d = f32[64,4096] divide(p, b)
    }

    ROOT d = f32[64,4096] fusion(f32[64,4096] x), kind=kLoop, calls=columns
    ->
    ...
    columns {
      p = f32[64,4096] parameter(0)
      zero = f32[] constant(0)
      t = f32[4096] reduce(p, zero), dimensions={0}, to_apply=sum
      b = f32[64,4096] broadcast(t), dimensions={1}
      ROOT d = f32[64,4096] divide(p, b)
    }

    ROOT d = f32[64,4096] fusion(x), kind=kCustom, calls=columns
    """

    name = "fusion-block-level-rewriter"
    lead: float = 1.2
    max_instructions: int = 96
    constraints = (
        Constraint("priority-fusion", "fusion-block-level-rewriter", "fusions have to be there"),
        Constraint("normalization-fusion", "fusion-block-level-rewriter", "rows that are one kernel are one already"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        if absent(ctx):
            return False
        target, changed = ctx.target or targets.get("sm_90"), False
        for c in list(module.non_fusion_computations()):
            for i in c.instructions:
                if i.opcode == "fusion" and i.kind in ("kLoop", "kInput"):
                    changed |= self._rewrite(i, target, ctx)
        return changed

    def _rewrite(self, fusion: Instruction, target: Target, ctx: PassContext) -> bool:
        reduces = [i for i in fusion.calls.instructions if i.opcode == "reduce"]
        if not reduces:
            return False
        if all(_is_result(i) or i.shape.is_array and keeps_rows(i) for i in reduces):
            ctx.decide(False, "its emitter reads what it reduces once", subject=fusion.name)
            return False
        clock, moved = (
            clock_of(target),
            sum(x.shape.total_bytes for x in (fusion, *fusion.operands)),
        )
        own, least = estimate(kernel_cost(fusion, keeps=True), target).seconds, clock.launch + moved / clock.bandwidth
        if own < self.lead * least:  # cheap to know, so ahead of tiles
            why = "its kernel takes little longer than its bytes do"
            ctx.decide(False, why, subject=fusion.name, cost_before=own * 1e6, cost_after=least * 1e6)
            return False
        plan = self._plan(fusion, target)
        if isinstance(plan, str):
            ctx.decide(False, plan, subject=fusion.name)
            return False
        ours = plan.seconds
        ok = own >= self.lead * ours
        why = f"tiles of {plan.config}, {programs(_main(fusion).shape.dims, plan.config)} programs"
        why = why if ok else f"no emitter's kernel is {self.lead:g} times as slow: {why}"
        ctx.decide(ok, why, subject=fusion.name, cost_before=own * 1e6, cost_after=ours * 1e6)
        if not ok or not ctx.may_fire("blocks", "fusion_block_level_rewriter.py", fusion):
            return False
        fusion.attrs["kind"] = "kCustom"
        fusion.extras["backend_config"] = (locked(fusion, ctx, target) or plan.config).text(ROWS)
        return True

    def _plan(self, fusion: Instruction, target: Target) -> Plan | str:
        """The quickest way to cut a fusion; why there is none."""
        inside = dict.fromkeys(fusion.calls.post_order())
        if len(inside) > self.max_instructions:
            return f"it has more than {self.max_instructions} instructions"
        for i in inside:
            if not is_boundary(i) and not _is_part(i):
                return f"'{i.name}': '{i.opcode}' is not done on tiles here"
        tiling = row_tiling(_main(fusion), inside)
        if isinstance(tiling, Refusal):
            return f"'{tiling.instruction.name}': {tiling.why}"
        for output in joinable_outputs(fusion):
            if output.shape.dims != tiling.root.shape.dims and tiling.place_of(output) is None:
                return f"'{output.name}' does not follow the tiles of '{tiling.root.name}'"
        plans = row_plans(tiling, target)
        return f"'{plans.instruction.name}': {plans.why}" if isinstance(plans, Refusal) else plans[0]


def _main(fusion: Instruction) -> Instruction:
    """The largest result."""
    return max(joinable_outputs(fusion), key=lambda i: i.shape.num_elements if i.shape.is_array else 0)


def _is_result(i: Instruction) -> bool:
    return i.is_root or all(u.opcode == "tuple" for u in i.users)


def _is_part(i: Instruction) -> bool:
    if i.opcode == "constant":
        return i.shape.is_scalar
    return is_row_reduce(i) or has_form(i)
