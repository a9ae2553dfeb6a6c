"""canonicalize-all-gather-for-cse: an array is gathered as it is, and what was gathered is reshaped."""

from __future__ import annotations

from itertools import accumulate
from operator import mul

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.collectives.model.reductions import is_alone
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, reshape
from heron.records import dataclass


@register
@dataclass(frozen=True)
class CanonicalizeAllGatherForCse(Pass):
    """Gathers the operand of a reshape, and reshapes the result, where a dimension begins as the gathered one does.

    An array that is gathered in several forms is then exchanged once. The elements before a dimension are what counts:
    of x[6,4], reshaped to [2,3,1,4], a gather along dimension 2 or 3 is one of x along dimension 1.

    HloModule example, replica_count=2

    y = f32[1,4,3] reshape(f32[4,3] x)
    ROOT g = f32[1,8,3] all-gather(y), dimensions={1}
    ->
    HloModule example, replica_count=2

    h = f32[8,3] all-gather(x), dimensions={0}
    ROOT g = f32[1,8,3] reshape(h)
    """

    name = "canonicalize-all-gather-for-cse"
    constraints = (
        Constraint("canonicalize-all-gather-for-cse", "collective-cse", "equal gathers look equal by then"),
        Constraint(
            "canonicalize-all-gather-for-cse", "all-gather-remove-degenerate-dims", "that makes reshapes of its own"
        ),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            for i in c.instructions:
                if i.opcode != "all-gather" or not is_alone(i):
                    continue
                x = i.operands[0]
                while x.opcode == "reshape":
                    x = x.operands[0]
                dim = _as_gathered(i, x)
                if x is i.operands[0] or dim is None:
                    continue
                dims = list(x.shape.dims)
                dims[dim] *= i.shape.dims[i.dimensions[0]] // i.operands[0].shape.dims[i.dimensions[0]]
                attrs = {**i.attrs, "dimensions": (dim,)}
                whole = c.add("all-gather", [x], array(x.shape.element_type, dims), like=i, **attrs)
                c.replace(i, reshape(whole, i.shape.dims))
                ctx.decide(True, f"'{x.name}' is gathered as it is", subject=i.name)
                changed = True
        return changed


def _as_gathered(i: Instruction, x: Instruction) -> int | None:
    """The dimension of `x` that has as many elements before it as the gathered one of its reshape."""
    given = i.operands[0].shape
    if not given.num_elements or not x.shape.rank:
        return None
    before = list(accumulate(given.dims, mul, initial=1))[i.dimensions[0]]
    starts = list(accumulate(x.shape.dims, mul, initial=1))[:-1]
    found = [d for d, n in enumerate(starts) if n == before]
    # of several that begin alike all but the last have one element
    return found[-1] if found else None
