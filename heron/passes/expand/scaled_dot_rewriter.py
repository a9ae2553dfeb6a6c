"""scaled-dot-rewriter: products of block-scaled arrays as plain ones."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import F32, F64, ElementType
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, convert, reshape
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ScaledDotRewriter(Expander):
    """Multiplies the operands of a scaled-dot by their scales, in f32, for targets that cannot in the product.

    ROOT r = f32[2,3] scaled-dot(f8e4m3fn[2,4] x, f8e4m3fn[4,3] y, f8e8m0fnu[2,2] s, f8e8m0fnu[] none),
      lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ->
    a = f32[2,4] convert(x)
    w = f32[2,2] convert(s)
    spread = f32[2,2,2] broadcast(w), dimensions={0,1}
    each = f32[2,4] reshape(spread)
    m = f32[2,4] multiply(a, each)
    b = f32[4,3] convert(y)
    ROOT r = f32[2,3] dot(m, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    """

    name = "scaled-dot-rewriter"
    opcodes = frozenset({"scaled-dot"})

    def expand(self, i: Instruction) -> Instruction:
        wide = F64 if any(o.shape.element_type.bits == 64 for o in i.operands) else F32
        x, y, x_scale, y_scale = i.operands
        operands = [_scaled(x, x_scale, wide), _scaled(y, y_scale, wide)]
        new = home(i).add("dot", operands, i.shape, like=i, **i.attrs)
        new.extras = dict(i.extras)
        return new


def _scaled(x: Instruction, scale: Instruction, wide: ElementType) -> Instruction:
    """`x` times its scales; a scalar stands for none."""
    x = convert(x, wide)
    if not scale.shape.rank:
        return x
    scale = convert(scale, wide)
    blocks = [n // m for n, m in zip(x.shape.dims, scale.shape.dims, strict=True)]
    dims: list[int] = []
    kept: list[int] = []
    for n, block in zip(scale.shape.dims, blocks, strict=True):
        kept.append(len(dims))
        dims += [n, block] if block > 1 else [n]
    if len(dims) > len(kept):
        scale = home(x).add("broadcast", [scale], array(wide, dims), dimensions=tuple(kept))
    return x * reshape(scale, x.shape.dims)
