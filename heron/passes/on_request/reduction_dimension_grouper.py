"""reduction-dimension-grouper: dimensions side by side, all reduced or all kept, are one to a reduction."""

from __future__ import annotations

from itertools import groupby
from math import prod

from heron.hlo.ir.instruction import Instruction
from heron.passes.framework.registry import register
from heron.passes.on_request.reduction_degenerate_dim_remover import reduce_reshaped
from heron.passes.rewriting.expander import Expander
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ReductionDimensionGrouper(Expander):
    """Groups dimensions of a reduction, so that reduced and kept ones take turns and a few forms of code do for all.

    No pipeline has it: the reduction emitter walks such dimensions as one itself, and reductions of reshaped arrays are
    not fused with others of the arrays.

    ROOT r = f32[2,3] reduce(f32[2,3,4,8] x, f32[] init), dimensions={2,3}, to_apply=sum

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }
    ->
    y = f32[6,32] reshape(x)
    s = f32[6] reduce(y, init), dimensions={1}, to_apply=sum
    ROOT r = f32[2,3] reshape(s)
    """

    name = "reduction-dimension-grouper"
    opcodes = frozenset({"reduce"})

    def matches(self, i: Instruction) -> bool:
        return len(_groups(i)) < i.operands[0].shape.rank and i.operands[0].shape.num_elements > 0

    def expand(self, i: Instruction) -> Instruction:
        groups = _groups(i)
        sizes = i.operands[0].shape.dims
        dims = [prod(sizes[d] for d in group) for group in groups]
        return reduce_reshaped(i, dims, [n for n, group in enumerate(groups) if group[0] in i.dimensions])


def _groups(i: Instruction) -> list[list[int]]:
    """Runs of dimensions that are all reduced or all kept."""
    return [list(run) for _, run in groupby(range(i.operands[0].shape.rank), key=lambda d: d in i.dimensions)]
