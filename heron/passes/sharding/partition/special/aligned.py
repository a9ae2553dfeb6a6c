"""Gathers and scatters whose index counts along a batch dimension: both dimensions are walked together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from heron.analysis.values.counting import counted_dim
from heron.hlo.ir.instruction import Instruction
from heron.passes.sharding.partition.context import Partitioner
from heron.passes.sharding.partition.part import Part


class Aligned(NamedTuple):
    """Entry `entry` of every index is its place along dimension `batch` of the indices, and for dimension `dim`."""

    entry: int
    dim: int
    batch: int


def aligned(
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


def without(p: Partitioner, starts: Part, vector: int, entries: Sequence[Aligned]) -> Part:
    """Start indices without these entries."""
    starts = p.reshard(starts, starts.sharding.with_dim(vector, ()))
    gone = {a.entry for a in entries}
    kept = [p.slice(starts.value, vector, k, k + 1) for k in range(starts.dims[vector]) if k not in gone]
    dims = (*starts.dims[:vector], len(kept), *starts.dims[vector + 1 :])
    return Part(p.concatenate(kept, vector), starts.shape.with_dims(dims), starts.sharding)


def batching(
    entries: Sequence[Aligned], array: Sequence[int], starts: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The batching dimensions of the array, which go up, and those of the indices, with the ones of `entries`."""
    pairs = sorted([*zip(array, starts, strict=True), *((a.dim, a.batch) for a in entries)])
    return tuple(d for d, _ in pairs), tuple(b for _, b in pairs)
