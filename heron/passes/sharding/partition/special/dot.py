"""Dots and reductions: partial results along split contracted dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.analysis.sharding.rules import rule_of
from heron.passes.sharding.partition import default
from heron.passes.sharding.partition.part import Part
from heron.passes.sharding.partition.registry import partitions

if TYPE_CHECKING:
    from heron.hlo.ir.instruction import Instruction
    from heron.passes.sharding.partition.context import Partitioner


@partitions("dot", keeps_sums=True)
def dot(p: Partitioner, i: Instruction, operands: list[Part]) -> list[Part]:
    """A local dot. What lies beyond the end of an unevenly split contracted dimension is zero on both sides."""
    rule = rule_of(i)
    assert rule is not None
    taken, results, reduced = default.chosen(p, i, rule, operands)
    contracted = (i.lhs_contracting_dims, i.rhs_contracting_dims)
    clean = [
        Part(p.masked(part, dims, 0), part.shape, part.sharding) for part, dims in zip(taken, contracted, strict=True)
    ]
    return default.local(p, i, clean, results, reduced)
