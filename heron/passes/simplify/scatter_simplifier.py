"""scatter-simplifier: every scatter writes whole windows at the rows of one index matrix."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import is_static, reshape, transpose
from heron.passes.simplify.model.index_matrix import index_matrix
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ScatterSimplifier(Pass):
    """Brings scatters to one form, so that code for them is written once.

    The indices are a matrix, one index vector a row (``index_vector_dim=1``); updates have the row number first, then
    all dimensions of the operand in order (``update_window_dims={1,2,...}``), those of size 1 that were left out too;
    there are no batching dimensions: they become components of the index. ``scatter_dims_to_operand_dims`` stays as it
    is. Scatters of several arrays at once keep being that.

    add {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    ROOT r = f32[8,4] scatter(f32[8,4] x, s32[3] n, f32[3,4] u), update_window_dims={1}, inserted_window_dims={0},
      scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
    ->
    m = s32[3,1] reshape(n)
    w = f32[3,1,4] reshape(u)
    ROOT r = f32[8,4] scatter(x, m, w), update_window_dims={1,2}, inserted_window_dims={},
      scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
    """

    name = "scatter-simplifier"
    looks_for = frozenset({"scatter"})

    def run(self, module: Module, ctx: PassContext) -> bool:
        scatters = [i for i in module.instructions() if i.opcode == "scatter" and _may_simplify(i)]
        for i in scatters:
            _simplify(i)
        return bool(scatters)


def _may_simplify(i: Instruction) -> bool:
    # into an array without elements no window fits that has all its dimensions
    return not is_simple(i) and is_static(i) and i.operands[0].shape.num_elements > 0


def is_simple(i: Instruction) -> bool:
    """Whether a scatter has the form this pass gives."""
    return (
        i.operands[len(i.operands) // 2].shape.rank == 2
        and i.index_vector_dim == 1
        and i.update_window_dims == tuple(range(1, i.operands[0].shape.rank + 1))
        and not i.inserted_window_dims
        and not i.input_batching_dims
    )


def _simplify(i: Instruction) -> None:
    c = i.parent
    assert c is not None
    count = len(i.operands) // 2
    indices = i.operands[count]
    matrix, _ = index_matrix(indices, i.index_vector_dim, i.scatter_indices_batching_dims, i)
    rank = i.operands[0].shape.rank
    absent = {*i.inserted_window_dims, *i.input_batching_dims}

    def rows_of_windows(updates: Instruction) -> Instruction:
        window = i.update_window_dims
        ordered = transpose(updates, [*(d for d in range(updates.shape.rank) if d not in window), *window])
        sizes = iter([updates.shape.dims[d] for d in window])
        return reshape(ordered, (matrix.shape.dims[0], *(1 if d in absent else next(sizes) for d in range(rank))))

    c.replace_with(
        i,
        "scatter",
        [*i.operands[:count], matrix, *map(rows_of_windows, i.operands[count + 1 :])],
        i.shape,
        update_window_dims=tuple(range(1, rank + 1)),
        inserted_window_dims=(),
        scatter_dims_to_operand_dims=(*i.input_batching_dims, *i.scatter_dims_to_operand_dims),
        index_vector_dim=1,
        indices_are_sorted=i.indices_are_sorted and not i.input_batching_dims,
        unique_indices=i.unique_indices and not i.input_batching_dims,
        to_apply=i.to_apply,
    )
