"""fusion-wrapper: what is still to be computed by a kernel becomes a fusion of one."""

from __future__ import annotations

from heron.analysis.fusion.roles import is_emitted, is_view
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.fusion.model.build import fuse
from heron.records import dataclass


@register
@dataclass(frozen=True)
class FusionWrapper(Pass):
    """Wraps every op that needs a kernel, and is in none, into a fusion of its own; views become bitcasts.

    Afterwards a computation that runs consists of fusions, library calls, control flow, copies and structure.
    Scalar constants go inside; larger ones stay operands. A reshape, or a transpose or broadcast that only moves
    dimensions of size 1, needs no kernel: arrays are row-major, so its bytes are its operand's.

    ROOT n = f32[8] negate(f32[8] x)
    ->
    body {
      p = f32[8] parameter(0)
      ROOT r = f32[8] negate(p)
    }
    ROOT f = f32[8] fusion(x), kind=kLoop, calls=body
    """

    name = "fusion-wrapper"
    constraints = (
        Constraint("instruction-fusion", "fusion-wrapper", "wrapped ops are not fused any more"),
        Constraint("multi-output-fusion", "fusion-wrapper", "wrapped ops are not fused any more"),
        Constraint("fusion-wrapper", "copy-insertion", "in-place updates are decided on whole kernels"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            for i in c.post_order():
                if i.parent is None:  # a constant that went inside
                    continue
                if is_view(i) and i.opcode != "bitcast":
                    c.replace_with(i, "bitcast", i.operands[:1], i.shape)
                    changed = True
                elif is_emitted(i):
                    constants = {o for o in i.operands if o.opcode == "constant" and o.shape.is_scalar}
                    ctx.trace.became[i.name] = fuse([i], constants | {i}, prefix="wrapped_").name
                    changed = True
        return changed
