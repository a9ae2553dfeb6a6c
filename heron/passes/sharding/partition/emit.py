"""A part in another sharding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.hlo.sharding.atoms import TensorSharding
from heron.passes.sharding.partition.part import Part

if TYPE_CHECKING:
    from heron.passes.sharding.partition.context import Partitioner


def reshard(p: Partitioner, part: Part, sharding: TensorSharding) -> Part:
    """The same array in another sharding; the part itself where it has it already."""
    wanted = sharding.close()
    if part.sharding.dims == wanted.dims and part.sharding.unreduced == wanted.unreduced:
        return part
    if not part.shape.is_array:
        return part
    versions = p.frame.versions.setdefault(part.value, {})
    found = versions.get(wanted)
    if found is None:
        found = versions[wanted] = _resharded(p, part, wanted)
    return found


def _resharded(p: Partitioner, part: Part, wanted: TensorSharding) -> Part:
    value, dims = part.value, part.dims
    summed = tuple(sorted(part.sharding.unreduced - wanted.unreduced))
    value = p.all_reduce(value, summed, "add")
    for dim, (old, new) in enumerate(zip(part.sharding.dims, wanted.dims, strict=True)):
        if old == new:
            continue
        value = p.slice(p.all_gather(value, dim, old), dim, 0, dims[dim])
    for dim, (old, new) in enumerate(zip(part.sharding.dims, wanted.dims, strict=True)):
        if old == new or not new:
            continue
        tile = -(-dims[dim] // p.mesh.size(new))
        padded = p.pad(value, dim, 0, tile * p.mesh.size(new) - dims[dim])
        sizes = padded.shape.dims
        value = p.dynamic_slice(
            padded, {dim: p.scaled(p.index(new), tile, dims[dim])}, (*sizes[:dim], tile, *sizes[dim + 1 :])
        )
    partial = tuple(sorted(wanted.unreduced - part.sharding.unreduced))
    if partial:
        first = p.compare("EQ", p.index(partial), p.constant(0, p.index(partial).shape.element_type))
        nothing = p.full(0, part.shape.element_type, value.shape.dims)
        value = p.add(
            "select", [p.full(first, first.shape.element_type, value.shape.dims), value, nothing], value.shape
        )
    return Part(value, part.shape, wanted)
