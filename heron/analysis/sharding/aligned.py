"""Gathers and scatters whose index counts along a batch dimension: both dimensions are walked together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from heron.analysis.values.counting import counted_dim
from heron.hlo.ir.instruction import Instruction


class Aligned(NamedTuple):
    """Entry `entry` of every index is its place along dimension `batch` of the indices, and for dimension `dim`."""

    entry: int
    dim: int
    batch: int


def _aligned(
    x: tuple[int, ...],
    starts: Instruction,
    vector: int,
    mapped: Sequence[int],
    gone: Sequence[int],
    taken: Sequence[int],
) -> list[Aligned]:
    """The entries of indices that say no more than a batching dimension would.

    `mapped`: the dimension of the array, of sizes `x`, for each entry; `gone`: dimensions of which a window has one
    element and that results lack; `taken`: batching dimensions of the indices. At least one entry is left.
    """
    found: list[Aligned] = []
    used = {*taken, vector}
    for entry, source in enumerate(_entries(starts, vector)):
        dim = mapped[entry]
        batch = None if source is None or dim not in gone else counted_dim(source)
        if batch is None or batch in used or starts.shape.dims[batch] != x[dim] or len(found) + 1 == len(mapped):
            continue
        used.add(batch)
        found.append(Aligned(entry, dim, batch))
    return found


def _entries(starts: Instruction, vector: int) -> list[Instruction | None]:
    """For each entry of indices the instruction that gives it alone, where there is one."""
    if vector == starts.shape.rank:
        return [starts]
    if starts.opcode != "concatenate" or starts.dimensions != (vector,):
        return [None] * starts.shape.dims[vector]
    return [e for o in starts.operands for e in ([o] if o.shape.dims[vector] == 1 else [None] * o.shape.dims[vector])]


def aligned_in_gather(i: Instruction) -> list[Aligned]:
    """The entries of a gather's indices that say no more than batching dimensions would."""
    x, starts = i.operands
    taken = i.start_indices_batching_dims
    return _aligned(x.shape.dims, starts, i.index_vector_dim, i.start_index_map, i.collapsed_slice_dims, taken)


def aligned_in_scatter(i: Instruction) -> list[Aligned]:
    """The entries of a scatter's indices that say no more than batching dimensions would."""
    x, starts = i.operands[0], i.operands[len(i.operands) // 2]
    mapped, taken = i.scatter_dims_to_operand_dims, i.scatter_indices_batching_dims
    return _aligned(x.shape.dims, starts, i.index_vector_dim, mapped, i.inserted_window_dims, taken)


def batching(
    entries: Sequence[Aligned], array: Sequence[int], starts: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The batching dimensions of the array, which go up, and those of the indices, with the ones of `entries`."""
    pairs = sorted([*zip(array, starts, strict=True), *((a.dim, a.batch) for a in entries)])
    return tuple(d for d, _ in pairs), tuple(b for _, b in pairs)
