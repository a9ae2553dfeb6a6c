"""Arrays that come from nowhere: constants and iotas are made in parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from heron.hlo.ir.shape import row_major
from heron.hlo.ir.types import S32, S64
from heron.hlo.sharding.atoms import TensorSharding
from heron.passes.sharding.partition.part import Part
from heron.passes.sharding.partition.registry import partitions

if TYPE_CHECKING:
    from heron.hlo.ir.instruction import Instruction
    from heron.passes.sharding.partition.context import Partitioner


@partitions("constant")
def constant(p: Partitioner, i: Instruction, operands: list[Part]) -> list[Part] | None:
    """A constant of equal elements is local; of another each device cuts its share."""
    if i.shape.is_tuple:
        return None
    wanted = without_sums(p.wanted(i))
    value = p.add("constant", (), i.shape.with_default_layout(), literal=i.literal)
    whole = Part(value, i.shape, TensorSharding.whole(i.shape.rank, wanted.manual))
    if wanted.is_whole:
        return [whole]
    array = np.ascontiguousarray(i.literal.array)
    first = array.reshape(-1)[:1]
    if array.size and bool((array.reshape(-1).view(np.uint8).reshape(array.size, -1) == first.view(np.uint8)).all()):
        return [Part(p.full(first[0], i.shape.element_type, p.local(i.shape, wanted).dims), i.shape, wanted)]
    return [p.reshard(whole, wanted)]


@partitions("iota")
def iota(p: Partitioner, i: Instruction, operands: list[Part]) -> Part:
    """A local iota, shifted by the place of the share: counted in integers that hold any index."""
    wanted = without_sums(p.wanted(i))
    shape, dim = p.local(i.shape, wanted), i.iota_dimension
    axes = wanted.dims[dim]
    if not axes:
        return Part(p.iota(shape.dims, dim, i.shape.element_type), i.shape, wanted)
    t = S64 if i.shape.dims[dim] >= 2**31 else S32
    start = p.convert(p.scaled(p.index(axes), shape.dims[dim], i.shape.dims[dim]), t)
    count = p.add("add", [p.iota(shape.dims, dim, t), p.full(start, t, shape.dims)], row_major(t, *shape.dims))
    return Part(p.convert(count, i.shape.element_type), i.shape, wanted)


def without_sums(sharding: TensorSharding) -> TensorSharding:
    """The same split, nothing unreduced."""
    return TensorSharding.closed(sharding.dims, manual=sharding.manual)
