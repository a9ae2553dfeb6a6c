"""Borders of manual computations: the array is seen whole or local along the manual axes. Nothing is computed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from heron.errors import HeronError
from heron.hlo.sharding.atoms import Axes, TensorSharding
from heron.passes.sharding.partition.part import Part
from heron.passes.sharding.partition.registry import partitions

if TYPE_CHECKING:
    from heron.hlo.ir.instruction import Instruction
    from heron.hlo.ir.shape import Shape
    from heron.passes.sharding.partition.context import Partitioner


@partitions("custom-call:SPMDFullToShardShape", keeps_sums=True)
def enter(p: Partitioner, i: Instruction, operands: list[Part]) -> Part:
    """The share of a global array becomes an array that is local along the manual axes."""
    manual = p.wanted(i).manual
    given = p.wanted(i.operands[0])
    _need_outer(p, i, given, manual)
    part = p.reshard(operands[0], replace(given, dims=_at_border(p, given, manual, i.shape)))
    inner = tuple(tuple(a for a in axes if a not in manual) for axes in part.sharding.dims)
    return Part(part.value, i.shape, TensorSharding.closed(inner, part.sharding.unreduced - manual, manual))


@partitions("custom-call:SPMDShardToFullShape", keeps_sums=True)
def leave(p: Partitioner, i: Instruction, operands: list[Part]) -> Part:
    """An array that is local along the manual axes becomes the share of a global array."""
    (part,) = operands
    outer = p.wanted(i)
    manual = part.sharding.manual - outer.manual
    _need_outer(p, i, outer, manual)
    dims = _at_border(p, outer, manual, part.shape)
    inner = tuple(tuple(a for a in axes if a not in manual) for axes in dims)
    sums = outer.unreduced - manual
    local = p.reshard(part, TensorSharding.closed(inner, sums, part.sharding.manual))
    return p.reshard(Part(local.value, i.shape, replace(outer, dims=dims)), outer)


def _at_border(p: Partitioner, outer: TensorSharding, manual: frozenset[int], local: Shape) -> tuple[Axes, ...]:
    """The axes of each dimension at a border: other axes beside the manual ones only where they divide the local size.

    Uneven shares of the local array are not those of the global one.
    """
    found: list[Axes] = []
    for axes, size in zip(outer.dims, local.dims, strict=True):
        others = [a for a in axes if a not in manual]
        found.append(axes if size % p.mesh.size(others) == 0 else tuple(a for a in axes if a in manual))
    return tuple(found)


def _need_outer(p: Partitioner, i: Instruction, sharding: TensorSharding, manual: frozenset[int]) -> None:
    """Raises SPMD002 unless manual axes are the outer ones of each dimension."""
    for dim, axes in enumerate(sharding.dims):
        kinds = [a in manual for a in axes]
        if kinds != sorted(kinds, reverse=True):
            raise HeronError(
                "SPMD002",
                f"dimension {dim} is split along {p.mesh.text(axes)}, of which the inner ones are manual",
                where=str(i)[:200],
                why=f"the manual axes are {p.mesh.text(sorted(manual))}",
                hint="write the manual axes first",
            )


@partitions("custom-call:Sharding", keeps_sums=True)
def constraint(p: Partitioner, i: Instruction, operands: list[Part]) -> list[Part]:
    """A constraint is where an array is resharded."""
    return [p.reshard(part, p.wanted(i, index)) for part, (index, _) in zip(operands, i.shape.leaves(), strict=True)]


@partitions("custom-call:xla.sdy.PropagationBarrier", keeps_sums=True)
def barrier(p: Partitioner, i: Instruction, operands: list[Part]) -> list[Part]:
    """A propagation barrier has done its work."""
    return operands
