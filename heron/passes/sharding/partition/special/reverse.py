"""reverse: shares are reversed, and sent to where their elements are now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.hlo.ir.instruction import Instruction
from heron.passes.sharding.partition.halo import exchange
from heron.passes.sharding.partition.moves import Span, pieces, tiles
from heron.passes.sharding.partition.part import Part
from heron.passes.sharding.partition.registry import partitions
from heron.passes.sharding.partition.windowed import meeting

if TYPE_CHECKING:
    from heron.passes.sharding.partition.context import Partitioner


@partitions("reverse")
def partition_reverse(p: Partitioner, i: Instruction, operands: list[Part]) -> Part:
    """Rubbish of a short share comes first when the share is reversed; elements move by that much."""
    taken, _ = meeting(operands[0], i.shape.dims, p.wanted(i), i.dimensions.__contains__)
    part = p.reshard(operands[0], taken)
    value = p.add("reverse", [part.value], dimensions=i.dimensions)
    for dim in i.dimensions:
        axes, size, tile = part.sharding.dims[dim], part.dims[dim], part.local_dims[dim]
        if axes:
            given = tiles(size, p.mesh.size(axes))
            have = [Span(s.device, size - s.limit, size - s.start, tile - (s.limit - s.start)) for s in given]
            value = exchange(p, value, dim, axes, pieces(have, given), tile, None)
    return Part(value, i.shape, part.sharding)
