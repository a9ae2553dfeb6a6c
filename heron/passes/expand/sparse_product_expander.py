"""sparse-product-expander: products of sparse matrices by rows are sums by row of what their elements multiply."""

from __future__ import annotations

from heron.hlo.calls import sparse
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import S32, S64
from heron.hlo.ir.window import WindowDim
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import applied, array, convert, reshape, scalar, splat
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class SparseProductExpander(Expander):
    """Gathers a row of the dense array for each element of the matrix and adds it, times the element, to the result.

    The row of an element is the number of rows that begin up to it, less one. Elements after the last row, and those in
    columns that the matrix has not, are put outside of the result, where they are dropped.

    ROOT r = f32[3] custom-call(f32[5] data, s32[4] starts, s32[5] columns, f32[7] x),
      custom_call_target="cpu_csr_sparse_dense_ffi"
    ->
    ...
    """

    name = "sparse-product-expander"
    opcodes = frozenset({"custom-call"})

    def matches(self, i: Instruction) -> bool:
        return i.custom_call_target in sparse.CSR_DENSE.targets

    def expand(self, i: Instruction) -> Instruction:
        c = home(i)
        data, starts, columns, dense = i.operands
        count, size = data.shape.num_elements, dense.shape.dims[0]
        height, *rest = i.shape.dims
        nothing = splat(c, i.shape, 0)
        if not count or not dense.shape.num_elements or not i.shape.num_elements:
            return nothing
        t = S64 if S64 in (starts.shape.element_type, columns.shape.element_type) else S32
        columns = convert(columns, t)
        rows = _rows(convert(starts, t), count)
        lowest, highest = splat(c, columns.shape, 0), splat(c, columns.shape, size)
        inside = columns.ge(lowest) & columns.lt(highest) & rows.ge(lowest)
        rows = c.add("select", [inside, rows, splat(c, rows.shape, height)])
        taken = c.add(
            "gather",
            [dense, reshape(columns, (count, 1))],
            array(dense.shape.element_type, (count, *rest)),
            offset_dims=tuple(range(1, 1 + len(rest))),
            collapsed_slice_dims=(0,),
            start_index_map=(0,),
            index_vector_dim=1,
            slice_sizes=(1, *rest),
        )
        factors = c.add("broadcast", [data], taken.shape, dimensions=(0,)) if rest else data
        assert c.module is not None
        return c.add(
            "scatter",
            [nothing, reshape(rows, (count, 1)), factors * taken],
            array(i.shape.element_type, i.shape.dims),
            update_window_dims=tuple(range(1, 1 + len(rest))),
            inserted_window_dims=(0,),
            scatter_dims_to_operand_dims=(0,),
            index_vector_dim=1,
            to_apply=applied(c.module, "add", i.shape.element_type),
        )


def _rows(starts: Instruction, count: int) -> Instruction:
    """The row of each of `count` elements: -1 before the first one, and the number of rows after the last."""
    c, t = home(starts), starts.shape.element_type
    assert c.module is not None
    add, of = applied(c.module, "add", t), array(t, (count,))
    begun = c.add(
        "scatter",
        [
            splat(c, of, 0),
            reshape(c.add("maximum", [starts, splat(c, starts.shape, 0)]), (starts.shape.num_elements, 1)),
            splat(c, starts.shape, 1),
        ],
        of,
        update_window_dims=(),
        inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        index_vector_dim=1,
        to_apply=add,
    )
    window = (WindowDim(count, 1, count - 1, 0),)
    total = c.add("reduce-window", [begun, scalar(c, t, 0)], of, window=window, to_apply=add)
    return total - splat(c, of, 1)
