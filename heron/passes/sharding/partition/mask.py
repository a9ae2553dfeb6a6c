"""Elements beyond the end of unevenly split dimensions set to a value that does no harm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import row_major, scalar
from heron.hlo.ir.types import PRED

if TYPE_CHECKING:
    from heron.passes.sharding.partition.context import Partitioner
    from heron.passes.sharding.partition.part import Part


def masked(p: Partitioner, part: Part, dims: tuple[int, ...], fill: Any) -> Instruction:
    """The share of a part, with a scalar beyond the array's end along `dims`."""
    uneven = tuple(d for d in dims if part.is_uneven(d, p.mesh))
    if not uneven:
        return part.value
    t = part.shape.element_type
    filling = p.full(fill, t, part.local_dims)
    key = "masked", part.value, part.dims, uneven, filling
    return p.once(key, lambda: p.add("select", [inside(p, part, uneven), part.value, filling], part.value.shape))


def inside(p: Partitioner, part: Part, dims: tuple[int, ...]) -> Instruction:
    """Whether an element of the share lies before the array's end along `dims`."""
    found: Instruction | None = None
    for dim in dims:
        test = _inside(p, part, dim)
        found = test if found is None else p.add("and", [found, test], test.shape)
    assert found is not None
    return found


def _inside(p: Partitioner, part: Part, dim: int) -> Instruction:
    key = "inside", part.local_dims, dim, part.dims[dim], part.sharding.dims[dim]
    return p.once(key, lambda: within(p, part.local_dims, dim, p.offset(part, dim), part.dims[dim]))


def within(p: Partitioner, dims: tuple[int, ...], dim: int, start: Instruction, limit: int) -> Instruction:
    """Whether `start`, a scalar, plus the index along `dim` lies below `limit`; pred[dims]."""
    t = start.shape.element_type
    count = p.iota(dims, dim, t)
    left = p.add("subtract", [p.constant(limit, t), start], scalar(t))
    return p.compare("LT", count, left)


def outside_masked(
    p: Partitioner, value: Instruction, dim: int, start: Instruction, limit: int, fill: Any
) -> Instruction:
    """`value`, with a scalar where `start` plus the index along `dim` is negative or not below `limit`."""
    dims, t = value.shape.dims, start.shape.element_type
    place = p.add("add", [p.iota(dims, dim, t), p.full(start, t, dims)], row_major(t, *dims))
    low = p.compare("GE", place, p.constant(0, t))
    high = p.compare("LT", place, p.constant(limit, t))
    test = p.add("and", [low, high], row_major(PRED, *dims))
    return p.add("select", [test, value, p.full(fill, value.shape.element_type, dims)], value.shape)
