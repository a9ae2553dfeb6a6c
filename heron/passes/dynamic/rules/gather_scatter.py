"""gather and scatter: windows that hang over a size, and indices that do not count."""

from __future__ import annotations

from heron.hlo.instruction import Instruction
from heron.hlo.types import S32
from heron.passes.building import convert
from heron.passes.dynamic.padded import Padded, refused, remade
from heron.passes.dynamic.rules.movement import parts
from heron.passes.dynamic.rules.table import rule


@rule("gather")
def _gather(i: Instruction, operands: list[Padded]) -> Instruction:
    x, indices = operands
    if indices.dynamic_of([i.index_vector_dim]):
        raise refused(i, "the length of an index is dynamic")
    return remade(i, [x.masked(parts(i.slice_sizes, x), 0), indices.x])


@rule("scatter")
def _scatter(i: Instruction, operands: list[Padded]) -> Instruction:
    """Indices beyond their size point outside, where nothing is written."""
    count = len(operands) // 2
    arrays, indices, updates = operands[:count], operands[count], operands[count + 1 :]
    window = list(i.update_window_dims)
    gone = {*i.inserted_window_dims, *i.input_batching_dims}
    covered = [d for d in range(arrays[0].x.shape.rank) if d not in gone]
    if any(u.dynamic_of(window) for u in updates) or any(a.dynamic_of(covered) for a in arrays):
        raise refused(i, "its windows are dynamic")
    batch = [d for d in range(indices.x.shape.rank) if d != i.index_vector_dim]
    places = [d for d in range(updates[0].x.shape.rank) if d not in window]
    told = {d: next((u.size(at) for u in updates if u.size(at)), None) for d, at in zip(batch, places, strict=True)}
    starts = indices.also(told)
    if not i.scatter_dims_to_operand_dims and starts.dynamic_of(batch):
        raise refused(i, "there is no index to point outside")
    t = indices.x.shape.element_type
    outside = (1 << t.bits - t.is_signed) - 1
    if t.bits - t.is_signed < 31 and starts.dynamic_of(batch):
        starts = Padded(convert(starts.x, S32), starts.sizes, starts.numbers)
        outside = (1 << 31) - 1
    return remade(i, [*(a.x for a in arrays), starts.masked(batch, outside), *(u.x for u in updates)])
