"""splitk-rewriter: long sums of few results are made in parallel parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from heron.hlo.instruction import Instruction
from heron.hlo.module import Module
from heron.hlo.types import F32, F64, ElementType
from heron.passes.building import applied, array, convert, reshape, scalar
from heron.passes.context import PassContext
from heron.passes.expand.expander import Expander, home
from heron.passes.registry import register

_SIDES = ("lhs", "rhs")


@register
@dataclass(frozen=True)
class SplitkRewriter(Expander):
    """Splits the contracting dimension of dots that have too few results to keep every core busy.

    The parts become a batch dimension, whose results are added up, small floats in f32. A core works on ``tile`` x
    ``tile`` results; there are ``cores`` of them (0: as many as the target has); a part keeps at least ``least``
    products, and what is missing in the last one is zeros. HLO leaves the order of a dot's sum open.

    No pipeline has it: matrix libraries split such sums themselves and know better when, and XLA leaves it off too.

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

    def run(self, module: Module, ctx: PassContext) -> bool:
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
        c, parts, wide = home(i), self._parts(i), _summed_in(i)
        attrs, operands = dict(i.attrs), []
        for side, x in zip(_SIDES, i.operands, strict=True):
            (d,) = i.attrs[f"{side}_contracting_dims"]
            operands.append(_in_parts(x, d, parts))
            batch = i.attrs.get(f"{side}_batch_dims", ())
            attrs[f"{side}_batch_dims"] = (d, *(n + (n > d) for n in batch))
            attrs[f"{side}_contracting_dims"] = (d + 1,)
        partial = c.add("dot", operands, array(wide, (parts, *i.shape.dims)), like=i, **attrs)
        assert c.module is not None
        zero, add = scalar(c, wide, 0), applied(c.module, "add", wide)
        shape = i.shape.with_type(wide)
        total = c.add("reduce", [partial, zero], shape, like=i, dimensions=(0,), to_apply=add)
        return convert(total, i.shape.element_type)


def _summed_in(i: Instruction) -> ElementType:
    return F64 if F64 in (i.shape.element_type, *(o.shape.element_type for o in i.operands)) else F32


def _in_parts(x: Instruction, d: int, parts: int) -> Instruction:
    """`x` with dimension `d` cut into parts of equal size, filled up by zeros."""
    c, sizes = home(x), list(x.shape.dims)
    size = -(-sizes[d] // parts)
    missing = parts * size - sizes[d]
    if missing:
        padding = tuple([(0, missing if n == d else 0, 0) for n in range(len(sizes))])
        sizes[d] += missing
        shape = array(x.shape.element_type, sizes)
        x = c.add("pad", [x, scalar(c, x.shape.element_type, 0)], shape, like=x, padding=padding)
    return reshape(x, (*sizes[:d], parts, size, *sizes[d + 1 :]))
