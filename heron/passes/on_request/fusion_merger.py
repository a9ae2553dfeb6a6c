"""fusion-merger: a fusion that others read goes into all of them when fewer bytes move then."""

from __future__ import annotations

from heron.analysis.cost.code_size import CodeLimit, code_limit, fusion_code
from heron.analysis.cost.kernel import KernelCost, Read, kernel_cost
from heron.analysis.fusion.iteration_space import joinable_outputs, reads_at_own_index
from heron.analysis.fusion.roles import stays_alone
from heron.hlo.facts import moves_elements
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.fusion.model.join import join_kernels
from heron.passes.rewriting.building import own_body
from heron.records import dataclass


@register
@dataclass(frozen=True)
class FusionMerger(Pass):
    """Merges a fusion into all fusions that read it, if those then read fewer bytes than are written and read now.

    Each of them computes it for itself, so it is a loop with one result, of which no element is wanted more than
    ``most_times``. For programs that come with fusions, so it is in no pipeline: behind priority-fusion, which weighs
    the same by time and op by op, it finds almost nothing left, and what it finds moves more bytes as often as fewer.
    Every fusion that others read leaves a decision with the bytes before and after.

    twice {
      p = f32[8] parameter(0)
      ROOT a = f32[8] add(p, p)
    }

    less {
      p = f32[8] parameter(0)
      q = f32[8] parameter(1)
      ROOT s = f32[8] subtract(p, q)
    }

    a = f32[8] fusion(f32[8] x), kind=kLoop, calls=twice
    ROOT s = f32[8] fusion(a, x), kind=kLoop, calls=less
    ->
    body {
      p = f32[8] parameter(0)
      a = f32[8] add(p, p)
      ROOT s = f32[8] subtract(a, p)
    }

    ROOT s = f32[8] fusion(x), kind=kLoop, calls=body
    """

    name = "fusion-merger"
    max_inputs: int = 32
    max_instructions: int = 1500
    most_times: float = 1.0
    constraints = (
        Constraint("fusion-merger", "multi-output-fusion", "what goes into its readers need not stand beside them"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            for i in reversed(c.post_order()):  # readers first: what is merged into them is weighed as part of them
                if i.opcode == "fusion" and i.users and i.shape.is_array:
                    changed |= self._merge(c, i, ctx)
        return changed

    def _merge(self, c: Computation, i: Instruction, ctx: PassContext) -> bool:
        readers = list(i.users)
        cost = kernel_cost(i)
        fusions = [u for u in readers if u.opcode == "fusion"]
        reads = {u: next(r for r in kernel_cost(u).reads if r.operand == i.name) for u in fusions}
        why_not = self._against(i, readers, reads, code_limit(ctx.target))
        before = cost.distinct + sum(r.distinct for r in reads.values())
        after = sum(_read_anew(i, cost, u) for u in readers)
        why = why_not or ("fewer bytes move" if after < before else "its readers would read more")
        ok = not why_not and after < before
        names = ", ".join(u.name for u in readers)
        ctx.decide(
            ok,
            why,
            subject=i.name,
            object=names,
            cost_before=None if why_not else before,
            cost_after=None if why_not else after,
        )
        for n, reader in enumerate(readers if ok else ()):
            mine = i
            if n < len(readers) - 1:
                mine = c.attach(i.clone(list(i.operands)))
                own_body(mine)
                for k, operand in enumerate(reader.operands):
                    if operand is i:
                        reader.set_operand(k, mine)
            ctx.trace.became[reader.name] = join_kernels([mine, reader]).name
        return ok

    def _against(
        self, i: Instruction, readers: list[Instruction], reads: dict[Instruction, Read], limit: CodeLimit
    ) -> str:
        root = i.fused_root
        if i.is_root or not joinable_outputs(i) or stays_alone(root):
            return "it is wanted in memory"
        if not (root.op.is_elementwise or moves_elements(root)):
            return f"'{root.name}' ({root.opcode}) is computed by all threads of a kernel together"
        for u in readers:
            if u not in reads or not joinable_outputs(u):
                return f"'{u.name}' ({u.opcode}) needs it in memory"
            if reads[u].total > self.most_times * reads[u].size and not reads_at_own_index(u, i):
                return f"'{u.name}' would compute its elements more than once"
            if len({*u.operands, *i.operands}) - 1 > self.max_inputs:
                return f"'{u.name}' would have more than {self.max_inputs} inputs"
            if len(u.calls) + len(i.calls) > self.max_instructions:
                return f"'{u.name}' would have more than {self.max_instructions} instructions"
            if fusion_code(u, limit) + fusion_code(i, limit) * sum(o is i for o in u.operands) > limit.most:
                return f"'{u.name}' would become more than {limit.most:.0f} LLVM instructions"
        return ""


def _read_anew(i: Instruction, cost: KernelCost, reader: Instruction) -> float:
    """Bytes that a reader of `i` would read more, were it to compute it."""
    known = {o.name for o in reader.operands}
    return sum(r.distinct for r in cost.reads if r.operand not in known)
