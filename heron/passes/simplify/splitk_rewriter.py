"""splitk-rewriter: long sums of few results are made in parallel parts."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from heron.analysis.blocks.config import BlockConfig, config_of
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Constraint
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.fusion.model.build import fuse
from heron.passes.fusion.model.split_sum import added, in_parts
from heron.passes.fusion.model.tiled import needed, why_whole
from heron.passes.rewriting.building import copy_body
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class SplitkRewriter(Expander):
    """Splits the contracting dimension of dots that have too few results to keep every core busy.

    The parts become a batch dimension, whose results are added up, small floats in f32. A core works on ``tile`` x
    ``tile`` results; there are ``cores`` of them (0: as many as the target has); a part keeps at least ``least``
    products, and what is missing in the last one is zeros. HLO leaves the order of a dot's sum open.

    Matrix libraries split such sums themselves and know better when. So with ``blocks`` only fusions are split in whose
    config `gemm-fusion`, whose model knows what the one more kernel costs, wrote in how many parts: a block kernel
    computes these, and what was behind the product in the fusion is done where they are added.

    ROOT r = f32[8,16] dot(f32[8,1020] x, f32[1020,16] y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ->
    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    zero_x = f32[] constant(0)
    wide_x = f32[8,1024] pad(x, zero_x), padding=0_0x0_4
    p = f32[8,8,128] reshape(wide_x)
    zero_y = f32[] constant(0)
    wide_y = f32[1024,16] pad(y, zero_y), padding=0_4x0_0
    q = f32[8,128,16] reshape(wide_y)
    d = f32[8,8,16] dot(p, q), lhs_batch_dims={1}, lhs_contracting_dims={2},
      rhs_batch_dims={0}, rhs_contracting_dims={1}
    zero = f32[] constant(0)
    ROOT r = f32[8,16] reduce(d, zero), dimensions={0}, to_apply=sum
    """

    name = "splitk-rewriter"
    opcodes = frozenset({"dot"})
    cores: int = 0
    tile: int = 64
    least: int = 128
    blocks: bool = False
    constraints = (
        Constraint("gemm-fusion", "splitk-rewriter", "that says which sums of its products are done in parts"),
        Constraint("splitk-rewriter", "priority-fusion", "what follows a product joins the sum of its parts"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        if self.blocks:
            found = [(i, x) for i in module.instructions() if (x := config_of(i)) is not None and x.split > 1]
            changed = [_in_parts(i, config, ctx) for i, config in found]
            if any(changed):
                module.remove_unused_computations()
            return any(changed)
        if self.cores:
            return super().run(module, ctx)
        return replace(self, cores=getattr(ctx.target, "cores", 132)).run(module, ctx)

    def matches(self, i: Instruction) -> bool:
        return self._parts(i) > 1

    def _parts(self, i: Instruction) -> int:
        """Into how many parts, a power of two, the sum is split; 1 when it stays whole."""
        if len(i.operands) != 2 or len(i.lhs_contracting_dims) != 1 or i.attrs.get("algorithm"):
            return 1
        if not all(x.shape.element_type.is_float for x in (i, *i.operands)):
            return 1
        batch = len(i.lhs_batch_dims)
        left = i.operands[0].shape.rank - batch - 1
        rows, columns = prod(i.shape.dims[batch : batch + left]), prod(i.shape.dims[batch + left :])
        tiles = prod(i.shape.dims[:batch]) * -(-rows // self.tile) * -(-columns // self.tile)
        summed, parts = i.operands[0].shape.dims[i.lhs_contracting_dims[0]], 1
        while tiles and tiles * parts < self.cores and -(-summed // (2 * parts)) >= self.least:
            parts *= 2
        return parts

    def expand(self, i: Instruction) -> Instruction:
        return added(in_parts(i, self._parts(i)), i)


def _in_parts(fusion: Instruction, config: BlockConfig, ctx: PassContext) -> bool:
    """The split that `gemm-fusion` asks for: one fusion of the product in parts, and the rest after their sum."""
    dots = [i for i in fusion.calls.instructions if i.opcode == "dot"]
    if len(dots) != 1 or len(config.tiles) != dots[0].shape.rank + 1:
        return False  # read from a text that has parts among the dimensions already
    why = why_whole(dots[0], config.split)
    if why or not ctx.may_fire("splitk-rewriter", "splitk_rewriter.py", fusion):
        ctx.decide(False, why, subject=fusion.name)
        return False
    c = home(fusion)
    copies = copy_body(c, fusion.calls, list(fusion.operands))
    c.replace(fusion, copies[fusion.calls.root])
    dot = copies[dots[0]]
    product = in_parts(dot, config.split)
    inside = {copy for i, copy in copies.items() if i.opcode != "parameter"} | {product, *product.operands}
    c.replace(dot, added(product, dot))
    made = fuse([product], needed(product, inside), prefix="gemm_fusion_")
    made.attrs["kind"] = "kCustom"
    made.extras["backend_config"] = replace(config, split=1).text()
    ctx.trace.became[fusion.name] = made.name
    why = f"its sum in {config.split} parts, which are added"
    ctx.decide(True, why, subject=fusion.name, object=made.name)
    return True
