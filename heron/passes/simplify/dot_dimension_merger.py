"""dot-dimension-merger: batch dimensions side by side become one."""

from __future__ import annotations

from math import prod

from heron.hlo.ir.instruction import Instruction
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, reshape
from heron.passes.rewriting.expander import Expander
from heron.records import dataclass


@register
@dataclass(frozen=True)
class DotDimensionMerger(Expander):
    """Merges the batch dimensions of a dot into one where they stand side by side in both operands.

    Code and libraries for dots know at most one batch dimension.

    ROOT r = f32[2,3,4,6] dot(f32[2,3,4,5] x, f32[2,3,5,6] y),
      lhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_batch_dims={0,1}, rhs_contracting_dims={2}
    ->
    p = f32[6,4,5] reshape(x)
    q = f32[6,5,6] reshape(y)
    d = f32[6,4,6] dot(p, q), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}
    ROOT r = f32[2,3,4,6] reshape(d)
    """

    name = "dot-dimension-merger"
    opcodes = frozenset({"dot"})

    def matches(self, i: Instruction) -> bool:
        sides = (i.lhs_batch_dims, i.rhs_batch_dims)
        return len(i.operands) == 2 and len(sides[0]) > 1 and all(map(_side_by_side, sides))

    def expand(self, i: Instruction) -> Instruction:
        c = i.parent
        assert c is not None
        attrs, operands = dict(i.attrs), []
        for side, x in zip(("lhs", "rhs"), i.operands, strict=True):
            batch = i.attrs[f"{side}_batch_dims"]
            first, more = batch[0], len(batch) - 1
            sizes = x.shape.dims
            operands.append(reshape(x, (*sizes[:first], prod(sizes[d] for d in batch), *sizes[first + more + 1 :])))
            attrs[f"{side}_batch_dims"] = (first,)
            key = f"{side}_contracting_dims"
            attrs[key] = tuple([d - more if d > first else d for d in i.attrs[key]])
        count = len(i.lhs_batch_dims)
        dims = (prod(i.shape.dims[:count]), *i.shape.dims[count:])
        small = c.add("dot", operands, array(i.shape.element_type, dims), like=i, **attrs)
        return reshape(small, i.shape.dims)


def _side_by_side(dims: tuple[int, ...]) -> bool:
    return dims == tuple(range(dims[0], dims[0] + len(dims)))
