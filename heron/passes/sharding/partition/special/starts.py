"""Start indices of gathers and scatters, entry by entry: those of split dimensions count from the begin of a part."""

from __future__ import annotations

from collections.abc import Sequence

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import S32, S64, U64
from heron.passes.sharding.partition.context import Partitioner


def signed(p: Partitioner, starts: Instruction) -> Instruction:
    """Indices in a signed type of 32 or 64 bits, so that differences of indices are exact. Huge ones stay huge."""
    t = starts.shape.element_type
    if t is U64:
        most = p.full((1 << 63) - 1, U64, starts.shape.dims)
        starts = p.add("minimum", [starts, most])
    wide = t.bits > 32 or (t.bits == 32 and not t.is_signed)
    return p.convert(starts, S64 if wide else S32)


def components(p: Partitioner, starts: Instruction, vector: int) -> list[Instruction]:
    """For each entry of an index its array over the batch dimensions."""
    dims = starts.shape.dims
    if vector == len(dims):
        return [starts]
    batch = dims[:vector] + dims[vector + 1 :]
    return [p.reshape(p.slice(starts, vector, k, k + 1), batch) for k in range(dims[vector])]


def joined(p: Partitioner, parts: Sequence[Instruction], like: Instruction, vector: int) -> Instruction:
    """The opposite of `components`, for start indices of the shape of `like`."""
    dims = like.shape.dims
    if not parts:
        return like
    if vector == len(dims):
        return parts[0]
    column = (*dims[:vector], 1, *dims[vector + 1 :])
    return p.concatenate([p.reshape(c, column) for c in parts], vector)


def minus(p: Partitioner, index: Instruction, offset: Instruction) -> Instruction:
    """An array of indices less a scalar."""
    t = index.shape.element_type
    return p.add("subtract", [index, p.full(p.convert(offset, t), t, index.shape.dims)])
