"""pad: a window of one element over the padded array."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.window import WindowDim
from heron.passes.sharding.partition.part import Part
from heron.passes.sharding.partition.registry import partitions
from heron.passes.sharding.partition.windowed import extended, meeting, nothing

if TYPE_CHECKING:
    from heron.passes.sharding.partition.context import Partitioner


@partitions("pad")
def partition_pad(p: Partitioner, i: Instruction, operands: list[Part]) -> Part:
    """Shares take the elements that they hold in the result, and the holes between and around are made locally."""
    wanted = p.wanted(i)
    if not prod(i.shape.dims):
        return nothing(p, i.shape, wanted.manual)
    moving = [each != (0, 0, 0) for each in i.padding]
    taken, made = meeting(operands[0], i.shape.dims, wanted, moving.__getitem__)
    part = p.reshard(operands[0], taken)
    fill = p.whole(operands[1]).value
    padding = list(i.padding)
    for dim, (low, high, interior) in enumerate(i.padding):
        if moving[dim] and made.dims[dim]:
            given = WindowDim(1, pad_low=low, pad_high=high, base_dilation=interior + 1)
            value, w = extended(p, part, dim, given, i.shape.dims[dim], fill, made.dims[dim])
            part = replace(part, value=value)
            padding[dim] = w.pad_low, w.pad_high, w.base_dilation - 1
    value = part.value
    if any(each != (0, 0, 0) for each in padding):
        value = p.add("pad", [value, fill], padding=tuple(padding))
    return Part(value, i.shape, made)
