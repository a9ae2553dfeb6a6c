"""scan-rewriter: long scans are one pass over memory."""

from __future__ import annotations

from heron.analysis.fusion.prefix_scan import is_long_scan
from heron.analysis.fusion.scan_plan import ScanPlan, single_pass
from heron.hlo.calls.scan import TARGET
from heron.hlo.ir import shape as shapes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.types import U32
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.fusion.model.build import fuse
from heron.passes.fusion.sort_fusion import computed_inside
from heron.passes.rewriting.building import is_static
from heron.records import dataclass

#: instructions that may be computed as a scan reads
_MOST = 100


@register
@dataclass(frozen=True)
class ScanRewriter(Pass):
    """Makes scans of few long rows, written as reduce-windows, calls of a kernel that reads and writes memory once.

    Blocks of threads take tiles of a row and tell each other what comes before, which takes scratch memory: flags, and
    partial results. Cutting rows into blocks that are scanned alone (reduce-window-rewriter) moves twice the bytes. The
    called computation has what the elements are computed by, if nobody else reads them, and ends in the reduce-window.

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT c = f32[] add(a, b)
    }

    zero = f32[] constant(0)
    ROOT r = f32[100000] reduce-window(f32[100000] x, zero), window={size=100000 pad=99999_0}, to_apply=sum
    ->
    ...
    """

    name = "scan-rewriter"
    constraints = (Constraint("scan-rewriter", "priority-fusion", "it computes what it reads, fusions are left alone"),)

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            for i in [i for i in c.instructions if is_long_scan(i) and is_static(i)]:
                if i.control_predecessors or i.control_successors:
                    continue
                plan, why_not = single_pass(i)
                if plan is None:
                    ctx.decide(False, why_not, subject=i.name, object="one pass")
                    continue
                why = f"{plan.rows * plan.tiles} blocks in turn, each element read once"
                ctx.decide(True, why, subject=i.name, object="one pass")
                _call(i, plan, ctx)
                changed = True
        return changed


def _call(i: Instruction, plan: ScanPlan, ctx: PassContext) -> None:
    """Replace `i` and the ops fused into it by the custom call."""
    name, c = i.name, i.parent
    assert c is not None
    fused = fuse([i], {i, *computed_inside(i, ctx, _MOST)})
    parts = [s.with_default_layout() for _, s in fused.shape.leaves()]
    words = [shapes.array(U32, (n,)).with_default_layout() for n in (plan.flags, plan.results * plan.words)]
    made = c.add(
        "custom-call", fused.operands, shapes.tuple_([*parts, *words]), like=fused, custom_call_target=TARGET,
        called_computations=(fused.calls,),
    )  # fmt: skip
    ctx.trace.became[name] = made.name
    results = [c.add("get-tuple-element", [made], s, like=fused, index=n) for n, s in enumerate(parts)]
    if fused.shape.is_tuple:
        for user in [u for u in fused.users if u.opcode == "get-tuple-element"]:
            c.replace(user, results[user.attrs["index"]])
    if fused.parent is c and (fused.users or fused.is_root):
        c.replace(fused, c.add("tuple", results, like=fused) if fused.shape.is_tuple else results[0])
    if fused.parent is c:
        c.remove(fused)
