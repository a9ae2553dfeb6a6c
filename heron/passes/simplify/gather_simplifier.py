"""gather-simplifier: every gather reads whole windows at the rows of one index matrix."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, is_static, reshape, transpose
from heron.passes.simplify.model.index_matrix import index_matrix
from heron.records import dataclass


@register
@dataclass(frozen=True)
class GatherSimplifier(Pass):
    """Brings gathers to one form, so that code for them is written once.

    The indices are a matrix, one index vector a row (``index_vector_dim=1``); the result has the row number first, then
    all dimensions of the operand in order (``offset_dims={1,2,...}``), with nothing collapsed and no batching
    dimensions, which become components of the index. Reshapes and a transpose around it give what the original gave.
    ``start_index_map`` stays as it is: the k-th component may index any dimension.

    ROOT r = f32[2,3,4] gather(f32[8,4] x, s32[2,3] n),
      offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1,4}
    ->
    m = s32[2,3,1] reshape(n)
    v = s32[6,1] reshape(m)
    g = f32[6,1,4] gather(x, v), offset_dims={1,2}, collapsed_slice_dims={},
      start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}
    ROOT r = f32[2,3,4] reshape(g)
    """

    name = "gather-simplifier"
    looks_for = frozenset({"gather"})

    def run(self, module: Module, ctx: PassContext) -> bool:
        gathers = [i for i in module.instructions() if i.opcode == "gather" and not is_simple(i) and _goes(i)]
        for i in gathers:
            _simplify(i)
        return bool(gathers)


def is_simple(i: Instruction) -> bool:
    """Whether a gather has the form this pass gives."""
    return (
        i.operands[1].shape.rank == 2
        and i.index_vector_dim == 1
        and i.offset_dims == tuple(range(1, i.operands[0].shape.rank + 1))
        and not i.collapsed_slice_dims
        and not i.operand_batching_dims
    )


def _goes(i: Instruction) -> bool:
    """Not those that collapse windows of nothing: what they give is no element of a window."""
    return is_static(i) and all(i.slice_sizes[d] == 1 for d in (*i.collapsed_slice_dims, *i.operand_batching_dims))


def _simplify(i: Instruction) -> None:
    c = i.parent
    assert c is not None
    x, indices = i.operands
    matrix, rows = index_matrix(indices, i.index_vector_dim, i.start_indices_batching_dims, i)
    sizes = tuple(i.slice_sizes)
    windows = c.add(
        "gather",
        [x, matrix],
        array(x.shape.element_type, (matrix.shape.dims[0], *sizes)),
        like=i,
        offset_dims=tuple(range(1, len(sizes) + 1)),
        collapsed_slice_dims=(),
        start_index_map=(*i.operand_batching_dims, *i.start_index_map),
        index_vector_dim=1,
        slice_sizes=sizes,
        indices_are_sorted=i.indices_are_sorted and not i.operand_batching_dims,
    )
    dropped = {*i.collapsed_slice_dims, *i.operand_batching_dims}
    kept = [size for d, size in enumerate(sizes) if d not in dropped]
    spread = reshape(windows, (*rows, *kept))
    # where each dimension of the result stands in `spread`: offsets behind, the others in front
    offset, row = iter(range(len(rows), len(rows) + len(kept))), iter(range(len(rows)))
    order = [next(offset) if d in i.offset_dims else next(row) for d in range(i.shape.rank)]
    c.replace(i, transpose(spread, order))
