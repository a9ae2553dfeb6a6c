"""gemv-rewriter: products with a vector are products with a matrix of one row or column."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, reshape
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass

_SIDES = ("lhs", "rhs")


@register
@dataclass(frozen=True)
class GemvRewriter(Expander):
    """Gives the sides of a dot that sum over all their dimensions one more, of size 1.

    Block-level code for products has rows and columns on both sides. No pipeline has it: libraries and kernels of our
    own take vectors as they are.

    ROOT r = f32[8] dot(f32[8,16] x, f32[16] y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ->
    m = f32[16,1] reshape(y)
    d = f32[8,1] dot(x, m), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT r = f32[8] reshape(d)
    """

    name = "gemv-rewriter"
    opcodes = frozenset({"dot"})

    def matches(self, i: Instruction) -> bool:
        return len(i.operands) == 2 and bool(i.lhs_contracting_dims) and any(_is_vector(i, n) for n in range(2))

    def expand(self, i: Instruction) -> Instruction:
        operands, dims = list(i.operands), list(i.shape.dims)
        batch = len(i.lhs_batch_dims)
        for n in range(2):
            if _is_vector(i, n):
                operands[n] = reshape(operands[n], (*operands[n].shape.dims, 1))
                dims.insert(batch if n == 0 else len(dims), 1)
        made = home(i).add("dot", operands, array(i.shape.element_type, dims), like=i, **i.attrs)
        return reshape(made, i.shape.dims)


def _is_vector(i: Instruction, n: int) -> bool:
    side = _SIDES[n]
    gone = len(i.attrs.get(f"{side}_batch_dims", ())) + len(i.attrs[f"{side}_contracting_dims"])
    return i.operands[n].shape.rank == gone
