"""gather and scatter: windows that hang over a size, and indices that do not count."""

from __future__ import annotations

from math import prod

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import PRED, S32, S64, ElementType
from heron.passes.dynamic.model.padded import Padded, refused, remade, spread, static
from heron.passes.dynamic.rules.movement import parts
from heron.passes.dynamic.rules.table import rule
from heron.passes.expand.model.index_lists import index_list
from heron.passes.rewriting.building import array, convert, reshape, scalar, transpose
from heron.passes.rewriting.expander import home


@rule("gather")
def _gather(i: Instruction, operands: list[Padded]) -> Instruction:
    x, indices = operands
    if indices.dynamic_of([i.index_vector_dim]):
        raise refused(i, "the length of an index is dynamic")
    taken = {*parts(i.slice_sizes, x), *i.collapsed_slice_dims}  # of a dimension that goes, one element
    return remade(i, [x.masked(sorted(taken), 0), indices.x])


@rule("scatter")
def _scatter(i: Instruction, operands: list[Padded]) -> Instruction:
    """Indices beyond their size point outside, where nothing is written."""
    count = len(operands) // 2
    arrays, indices, updates = operands[:count], operands[count], operands[count + 1 :]
    if indices.dynamic_of([i.index_vector_dim]):
        raise refused(i, "the length of an index is dynamic")
    batch = [d for d in range(indices.x.shape.rank) if d != i.index_vector_dim]
    places = [d for d in range(updates[0].x.shape.rank) if d not in i.update_window_dims]
    told = {d: next((u.size(at) for u in updates if u.size(at)), None) for d, at in zip(batch, places, strict=True)}
    starts = indices.also(told)
    whole = all(_is_whole(arrays[0], updates[0], d, w) for d, w in _windows(i, arrays[0]))
    if not whole or (starts.dynamic_of(batch) and not i.scatter_dims_to_operand_dims):
        return _by_element(i, arrays, starts, updates)
    t = indices.x.shape.element_type
    outside = (1 << t.bits - t.is_signed) - 1
    if t.bits - t.is_signed < 31 and starts.dynamic_of(batch):
        starts = Padded(convert(starts.x, S32), starts.sizes, starts.numbers)
        outside = (1 << 31) - 1
    return remade(i, [*(a.x for a in arrays), starts.masked(batch, outside), *(u.x for u in updates)])


def _windows(i: Instruction, x: Padded) -> list[tuple[int, int]]:
    """The dimensions of the operand that windows extend over, and theirs in the updates."""
    gone = {*i.inserted_window_dims, *i.input_batching_dims}
    return list(zip((d for d in range(x.x.shape.rank) if d not in gone), i.update_window_dims, strict=True))


def _is_whole(x: Padded, update: Padded, d: int, w: int) -> bool:
    """Whether a window has the static size, or is all of a dynamic dimension: then what it writes beyond is padding."""
    if not x.dynamic_of([d]) and not update.dynamic_of([w]):
        return True
    return x.size(d) is update.size(w) and x.x.shape.dims[d] == update.x.shape.dims[w]


def _by_element(i: Instruction, arrays: list[Padded], starts: Padded, updates: list[Padded]) -> Instruction:
    """Every element of a window finds its own place; those of windows that do not fit find none."""
    c, x, update = home(i), arrays[0], updates[0]
    t = S64 if starts.x.shape.element_type.bits > 32 else S32
    listed = index_list(
        convert(starts.x, t),
        i.index_vector_dim,
        i.scatter_dims_to_operand_dims,
        i.input_batching_dims,
        i.scatter_indices_batching_dims,
    )
    order = [*(d for d in range(update.x.shape.rank) if d not in i.update_window_dims), *i.update_window_dims]
    rows = listed.indices.shape.dims[0]
    dims = (rows, *(update.x.shape.dims[w] for w in i.update_window_dims))
    where, window = array(t, dims), dict(_windows(i, x))
    zero = spread(scalar(c, t, 0), where)
    counts = _counting_rows(starts, i.index_vector_dim, rows)
    fits = c.add("broadcast", [counts], array(PRED, dims), dimensions=(0,))
    columns: list[Instruction] = []
    for d in range(x.x.shape.rank):
        at = zero
        if d in listed.dims:
            n = listed.dims.index(d)
            column = c.add("slice", [listed.indices], array(t, (rows, 1)), slice=((0, rows, 1), (n, n + 1, 1)))
            at = c.add("broadcast", [reshape(column, (rows,))], where, dimensions=(0,))
        size = _of_type(x, d, t)
        if d in window:
            length = _of_type(update, window[d], t)
            along = c.add("iota", [], where, iota_dimension=1 + i.update_window_dims.index(window[d]))
            fits = fits & at.le(spread(size - length, where)) & along.lt(spread(length, where))
            columns.append(at + along)
        else:
            fits = fits & at.lt(spread(size, where))
            columns.append(at)
        fits = fits & at.ge(zero)
    columns[0] = c.add("select", [fits, columns[0], spread(scalar(c, t, -1), where)])
    rank, listed_dims = len(columns), (*dims, len(columns))
    indices = c.add(
        "concatenate", [reshape(p, (*dims, 1)) for p in columns], array(t, listed_dims), dimensions=(len(dims),)
    )
    every = tuple(range(rank))
    return c.attach(
        i.clone(
            [*(a.x for a in arrays), indices, *(reshape(transpose(u.x, order), dims) for u in updates)],
            static(i.shape),
            update_window_dims=(),
            inserted_window_dims=every,
            scatter_dims_to_operand_dims=every,
            input_batching_dims=(),
            scatter_indices_batching_dims=(),
            index_vector_dim=len(dims),
            unique_indices=False,
            indices_are_sorted=False,
        )
    )


def _counting_rows(starts: Padded, vector: int, rows: int) -> Instruction:
    """A mask of the rows of the list of indices that are not padding."""
    c = home(starts.x)
    batch = [d for d in range(starts.x.shape.rank) if d != vector]
    where = array(S32, [starts.x.shape.dims[d] for d in batch])
    assert prod(where.dims) == rows
    found = spread(scalar(c, PRED, True), array(PRED, where.dims))
    for n, d in enumerate(batch):
        if starts.dynamic_of([d]):
            found = found & c.add("iota", [], where, iota_dimension=n).lt(spread(starts.number(d), where))
    return reshape(found, (rows,))


def _of_type(x: Padded, d: int, t: ElementType) -> Instruction:
    return convert(x.number(d), t)
