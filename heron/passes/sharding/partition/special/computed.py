"""The shardings in which the default would compute an op, before anything is moved."""

from __future__ import annotations

from heron.analysis.sharding.choice import Choice, compute_shardings
from heron.hlo.ir.instruction import Instruction
from heron.passes.sharding.partition.context import Partitioner
from heron.passes.sharding.partition.part import Part


def computed_in(p: Partitioner, i: Instruction, operands: list[Part]) -> Choice:
    """The cheapest shardings to compute `i` in, where its operands are as they are and its results as wanted."""
    wanted = [p.wanted(i, index) for index, _ in i.shape.leaves()]
    return compute_shardings(i, [o.sharding for o in operands], wanted, p.mesh)
