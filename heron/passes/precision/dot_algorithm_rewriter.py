"""dot-algorithm-rewriter: products that read narrower operands than they have get those."""

from __future__ import annotations

from pathlib import PurePath

from heron.hlo.ir import types
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import convert
from heron.records import dataclass

#: what an algorithm rounds operands to, where products of that type to f32 are the same
_READS = {"dot_bf16_bf16_f32": types.BF16, "dot_f16_f16_f32": types.F16}


@register
@dataclass(frozen=True)
class DotAlgorithmRewriter(Pass):
    """Writes out what a product's algorithm does to its operands, and leaves the algorithm out.

    `dot_bf16_bf16_f32` rounds operands to bf16, and sums in f32: so does a product of bf16 with a result of f32, which
    libraries and block kernels have. The conversions meet others: JAX names this algorithm in attention, where the
    derivative multiplies f32 by bf16.

    ROOT d = f32[4,6] dot(f32[4,8] x, bf16[8,6] w), lhs_contracting_dims={1}, rhs_contracting_dims={0},
      algorithm=dot_bf16_bf16_f32
    ->
    c = bf16[4,8] convert(x)
    ROOT d = f32[4,6] dot(c, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    """

    name = "dot-algorithm-rewriter"
    constraints = (
        Constraint("dot-algorithm-rewriter", "operand-upcaster", "that would make operands wider that are read narrow"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.computations_to_rewrite():
            for dot in [i for i in c.instructions if i.opcode == "dot"]:
                narrow = _READS.get(dot.attrs.get("algorithm") or "")
                if narrow is None or dot.shape.element_type is not types.F32 or len(dot.operands) != 2:
                    continue
                if any(o.shape.element_type not in (narrow, types.F32) for o in dot.operands):
                    continue
                if not ctx.may_fire("algorithm", _HERE, dot):
                    return changed
                ctx.fired("algorithm", _HERE)
                rounded = [convert(o, narrow) for o in dot.operands]
                attrs = {name: value for name, value in dot.attrs.items() if name != "algorithm"}
                c.replace(dot, c.add("dot", rounded, dot.shape, like=dot, **attrs))
                changed = True
        return changed


_HERE = f"{PurePath(__file__).name}:{DotAlgorithmRewriter.run.__code__.co_firstlineno}"
