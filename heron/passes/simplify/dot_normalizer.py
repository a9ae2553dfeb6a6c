"""dot-normalizer: every dot sums over something."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import reshape
from heron.passes.rewriting.expander import Expander
from heron.records import dataclass


@register
@dataclass(frozen=True)
class DotNormalizer(Expander):
    """Gives dots without contracting dimensions one of size 1, which matrix libraries ask for.

    ROOT r = f32[4,5] dot(f32[4] x, f32[5] y)
    ->
    p = f32[4,1] reshape(x)
    q = f32[5,1] reshape(y)
    ROOT r = f32[4,5] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={1}
    """

    name = "dot-normalizer"
    opcodes = frozenset({"dot"})

    def matches(self, i: Instruction) -> bool:
        return len(i.operands) == 2 and not i.lhs_contracting_dims

    def expand(self, i: Instruction) -> Instruction:
        c = i.parent
        assert c is not None
        attrs, operands = dict(i.attrs), []
        for side, x in zip(("lhs", "rhs"), i.operands, strict=True):
            operands.append(reshape(x, (*x.shape.dims, 1)))
            attrs[f"{side}_contracting_dims"] = (x.shape.rank,)
        return c.add("dot", operands, i.shape, like=i, **attrs)
