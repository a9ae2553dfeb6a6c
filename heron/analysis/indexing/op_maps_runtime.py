"""Maps from results to operands for ops that read at positions computed by the program: runtime variables.

The values are clamped the way the op clamps them, which bounds the variables: a dynamic-slice of 3 out of 8 elements
starts at 0 to 5. A scatter drops windows that do not fit instead, so no other start has an effect.
"""

from __future__ import annotations

from collections.abc import Sequence

from heron.analysis.indexing.expr import Const, Dim, Expr, Sym, dims, syms
from heron.analysis.indexing.hlo_maps import gather_index, gather_start_index
from heron.analysis.indexing.map import Constraint, IndexingMap
from heron.analysis.indexing.op_maps import Sizes
from heron.analysis.indexing.runtime import Indexing, RuntimeVar
from heron.hlo.ir.instruction import Instruction


def _starts(m: IndexingMap, operands: Sequence[Instruction]) -> Indexing:
    """Runtime variables that are scalar operands, one a dimension."""
    return Indexing(m, tuple(RuntimeVar(o, ()) for o in operands))


def _dynamic_slice(i: Instruction, n: int, output: int, sizes: Sizes) -> Indexing | IndexingMap | None:
    operand = i.operands[0].shape.dims
    if n:
        return IndexingMap.from_sizes((), sizes) if i.operands[n].shape.rank == 0 else None
    if i.operands[1].shape.rank if len(i.operands) > 1 else False:
        return None  # the old form, with one vector of starts
    room = [max(a - b, 0) + 1 for a, b in zip(operand, sizes, strict=True)]
    m = IndexingMap.from_sizes([Dim(d) + Sym(d) for d in range(len(sizes))], sizes, (), room)
    return _starts(m, i.operands[1:])


def _dynamic_update_slice(i: Instruction, n: int, output: int, sizes: Sizes) -> Indexing | IndexingMap | None:
    update = i.operands[1].shape.dims
    if n > 1:
        return IndexingMap.from_sizes((), sizes) if i.operands[n].shape.rank == 0 else None
    if n == 0:
        return IndexingMap.identity(sizes)
    if i.operands[2].shape.rank if len(i.operands) > 2 else False:
        return None
    room = [a - b + 1 for a, b in zip(sizes, update, strict=True)]
    results = [Dim(d) - Sym(d) for d in range(len(sizes))]
    bounds = [(e, 0, size - 1) for e, size in zip(results, update, strict=True)]
    return _starts(IndexingMap.from_sizes(results, sizes, (), room).replace(constraints=bounds), i.operands[2:])


def _gather(i: Instruction, n: int, output: int, sizes: Sizes) -> Indexing | IndexingMap:
    index, indices = dims(len(sizes)), i.operands[1]
    if n == 1:
        length = indices.shape.dims[i.index_vector_dim] if i.index_vector_dim < indices.shape.rank else 1
        return IndexingMap.from_sizes(gather_start_index(i, index, Sym(0)), sizes, (length,))
    count = len(i.start_index_map)
    results, room = gather_index(i, index, syms(count))
    runtime = tuple(RuntimeVar(indices, gather_start_index(i, index, Const(k))) for k in range(count))
    return Indexing(IndexingMap.from_sizes(results, sizes, (), room), runtime)


def _scatter(i: Instruction, n: int, output: int, sizes: Sizes) -> Indexing | IndexingMap:
    """Symbols run over the updates' batch dimensions: any of them may hit an element."""
    count = len(i.operands) // 2
    if n < count:
        return IndexingMap.identity(sizes)
    indices, updates = i.operands[count], i.operands[count + 1].shape.dims
    batch = [d for d in range(len(updates)) if d not in i.update_window_dims]
    place = dict(zip(batch, syms(len(batch)), strict=True))
    lengths = [updates[d] for d in batch]
    if n == count:
        return _scatter_indices(i, sizes, indices, lengths)
    gone = {*i.inserted_window_dims, *(i.input_batching_dims or ())}
    window = dict(zip([d for d in range(len(sizes)) if d not in gone], i.update_window_dims, strict=True))
    starts = {d: Sym(len(batch) + k) for k, d in enumerate(i.scatter_dims_to_operand_dims)}
    constraints: list[Constraint] = []
    room: list[int] = [0] * len(starts)
    for d, size in enumerate(sizes):
        offset = Dim(d) - starts[d] if d in starts else Dim(d)
        if d in window:
            place[window[d]] = offset
            constraints.append((offset, 0, updates[window[d]] - 1))
        elif d in starts:
            constraints.append((offset, 0, 0))
        if d in starts:
            room[starts[d].index - len(batch)] = size - (updates[window[d]] if d in window else 1) + 1
    constraints += _same_batch(i, syms(len(batch)))
    m = IndexingMap.from_sizes([place[d] for d in range(len(updates))], sizes, lengths, room)
    runtime = tuple(RuntimeVar(indices, _vector(i, indices, syms(len(batch)), Const(k))) for k in range(len(starts)))
    return Indexing(m.replace(constraints=constraints), runtime)


def _scatter_indices(i: Instruction, sizes: Sizes, indices: Instruction, lengths: list[int]) -> IndexingMap:
    symbols = syms(len(lengths) + 1)
    index = _vector(i, indices, symbols[:-1], symbols[-1])
    vector = indices.shape.dims[i.index_vector_dim] if i.index_vector_dim < indices.shape.rank else 1
    found = IndexingMap.from_sizes(index, sizes, [*lengths, vector])
    return found.replace(constraints=_same_batch(i, symbols))


def _same_batch(i: Instruction, batch: Sequence[Expr]) -> list[Constraint]:
    """Operand and indices move together along batching dimensions."""
    pairs = zip(i.input_batching_dims or (), i.scatter_indices_batching_dims or (), strict=True)
    return [(Dim(d) - batch[at - (at > i.index_vector_dim)], 0, 0) for d, at in pairs]


def _vector(i: Instruction, indices: Instruction, batch: Sequence[Expr], component: Expr) -> tuple[Expr, ...]:
    """The place of component `component` of the index vector of a batch position."""
    index = list(batch)
    if i.index_vector_dim < indices.shape.rank:
        index.insert(i.index_vector_dim, component)
    return tuple(index)


BUILDERS = {
    "dynamic-slice": _dynamic_slice,
    "dynamic-update-slice": _dynamic_update_slice,
    "gather": _gather,
    "scatter": _scatter,
}
