"""splitk-rewriter: long sums of few results are made in parallel parts."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from heron.hlo.instruction import Instruction
from heron.passes.building import applied, array, reshape, scalar
from heron.passes.expand.expander import Expander
from heron.passes.registry import register


@register
@dataclass(frozen=True)
class SplitkRewriter(Expander):
    """Splits the contracting dimension of dots that have too few results to keep every core busy.

    The parts become a batch dimension, whose results are added up. A core works on ``tile`` x ``tile`` results; there
    are ``cores`` of them; a part keeps at least ``least`` products. The sum is added in another order.

    ROOT r = f32[8,16] dot(f32[8,1024] x, f32[1024,16] y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ->
    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    p = f32[8,8,128] reshape(x)
    q = f32[8,128,16] reshape(y)
    d = f32[8,8,16] dot(p, q), lhs_batch_dims={1}, lhs_contracting_dims={2},
      rhs_batch_dims={0}, rhs_contracting_dims={1}
    zero = f32[] constant(0)
    ROOT r = f32[8,16] reduce(d, zero), dimensions={0}, to_apply=sum
    """

    name = "splitk-rewriter"
    opcodes = frozenset({"dot"})
    cores: int = 132
    tile: int = 64
    least: int = 128

    def matches(self, i: Instruction) -> bool:
        return self._parts(i) > 1

    def _parts(self, i: Instruction) -> int:
        """Into how many equal parts, a power of two, the sum is split; 1 when it stays whole."""
        if len(i.operands) != 2 or len(i.lhs_contracting_dims) != 1 or i.attrs.get("algorithm"):
            return 1
        t = i.shape.element_type
        if not t.is_float or t.bits < 32 or any(o.shape.element_type is not t for o in i.operands):
            return 1
        batch = len(i.lhs_batch_dims)
        left = i.operands[0].shape.rank - batch - 1
        rows, columns = prod(i.shape.dims[batch : batch + left]), prod(i.shape.dims[batch + left :])
        tiles = prod(i.shape.dims[:batch]) * -(-rows // self.tile) * -(-columns // self.tile)
        summed, parts = i.operands[0].shape.dims[i.lhs_contracting_dims[0]], 1
        while (
            tiles and tiles * parts < self.cores and summed % (2 * parts) == 0 and summed // (2 * parts) >= self.least
        ):
            parts *= 2
        return parts

    def expand(self, i: Instruction) -> Instruction:
        c, parts, t = i.parent, self._parts(i), i.shape.element_type
        assert c is not None and c.module is not None
        attrs, operands = dict(i.attrs), []
        for side, x in zip(("lhs", "rhs"), i.operands, strict=True):
            (d,), sizes = i.attrs[f"{side}_contracting_dims"], x.shape.dims
            operands.append(reshape(x, (*sizes[:d], parts, sizes[d] // parts, *sizes[d + 1 :])))
            batch = i.attrs.get(f"{side}_batch_dims", ())
            attrs[f"{side}_batch_dims"] = (d, *(n + (n > d) for n in batch))
            attrs[f"{side}_contracting_dims"] = (d + 1,)
        partial = c.add("dot", operands, array(t, (parts, *i.shape.dims)), like=i, **attrs)
        zero, add = scalar(c, t, 0), applied(c.module, "add", t)
        return c.add("reduce", [partial, zero], i.shape, like=i, dimensions=(0,), to_apply=add)
