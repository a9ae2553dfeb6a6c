"""Tuples, copies and marks: parts are handed on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.passes.sharding.partition.registry import partitions

if TYPE_CHECKING:
    from heron.hlo.ir.instruction import Instruction
    from heron.passes.sharding.partition.context import Partitioner
    from heron.passes.sharding.partition.part import Part


@partitions("tuple", keeps_sums=True)
def tuple_(p: Partitioner, i: Instruction, operands: list[Part]) -> list[Part]:
    """The leaves of a tuple are those of its operands."""
    return operands


@partitions("get-tuple-element", keeps_sums=True)
def element(p: Partitioner, i: Instruction, operands: list[Part]) -> list[Part]:
    """An element has some of the leaves of its tuple."""
    places = [index[0] for index, _ in i.operands[0].shape.leaves()]
    return [part for part, place in zip(operands, places, strict=True) if place == i.index]


@partitions("copy", keeps_sums=True)
def copy(p: Partitioner, i: Instruction, operands: list[Part]) -> list[Part]:
    """A copy may have another sharding: then it is where the array is resharded."""
    return [p.reshard(part, p.wanted(i, index)) for part, (index, _) in zip(operands, i.shape.leaves(), strict=True)]
