"""float-normalization: arithmetic in types the machine computes in."""

from __future__ import annotations

from heron.analysis.graph.call_graph import SEQUENTIAL
from heron.hlo.ir.module import Module
from heron.hlo.ir.types import F32, by_name
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.precision.model.widen import computes, in_wider, involves
from heron.passes.rewriting.expander import home
from heron.records import dataclass

#: whose computations are programs or parts of one, and are not applied to scalars
_RUNS = SEQUENTIAL | {"fusion"}


@register
@dataclass(frozen=True)
class FloatNormalization(Pass):
    """Computes in f32 what the target does not compute in a narrow type itself, and rounds each result.

    The ops that a target does in each type are data of the target (``[floats]`` in its file); without a target none is.
    `types` are those to look at. Ops that only move values, the convert ops themselves, and computations that reduces
    and their like apply to scalars keep their type: accumulators are f32 anyway. Values stay: an op on narrow floats
    means the exact result rounded once.

    Kernels widen and round in just this way by themselves. So pipelines ask for it as ``excess``, only where the option
    ``math`` lets `simplify-fp-conversions` take out roundings between ops afterwards.

    ROOT r = bf16[4] add(bf16[4] x, bf16[4] y)
    ->
    a = f32[4] convert(x)
    b = f32[4] convert(y)
    s = f32[4] add(a, b)
    ROOT r = bf16[4] convert(s)
    """

    name = "float-normalization"
    types: tuple[str, ...] = (
        "bf16", "f16", "f8e5m2", "f8e4m3", "f8e4m3fn", "f8e4m3b11fnuz", "f8e5m2fnuz", "f8e4m3fnuz", "f8e3m4",
        "f4e2m1fn", "f6e2m3fn", "f6e3m2fn", "f8e8m0fnu",
    )  # fmt: skip

    excess: bool = False

    def run(self, module: Module, ctx: PassContext) -> bool:
        if self.excess and not ctx.options.allows("reassociating"):
            return False
        changed = False
        present = {i.shape.element_type for i in module.instructions()}
        for low in [t for t in map(by_name, self.types) if t in present]:
            applied = {c for i in module.instructions() if i.opcode not in _RUNS for c in i.called}
            for i in [i for i in module.instructions() if involves(i, low) and computes(i)]:
                if i.parent in applied or (ctx.target is not None and ctx.target.computes_in(i.opcode, low.name)):
                    continue
                home(i).replace(i, in_wider(i, low, F32))
                changed = True
        return changed
