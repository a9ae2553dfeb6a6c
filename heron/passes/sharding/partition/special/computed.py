"""The shardings in which an op is computed that takes more than the same op on parts."""

from __future__ import annotations

from heron.analysis.sharding.choice import Choice, compute_shardings
from heron.analysis.sharding.rule import OpRule
from heron.hlo.ir.instruction import Instruction
from heron.passes.sharding.partition.context import Partitioner
from heron.passes.sharding.partition.part import Part


def computed_in(
    p: Partitioner, i: Instruction, operands: list[Part], moves: bool = False, rule: OpRule | None = None
) -> Choice:
    """The cheapest shardings to compute `i` in, where its operands are as they are and its results as wanted.

    With `moves` its indexed dimensions may be split too. `rule` is another rule than that of the op.
    """
    arrays = [o.sharding for o in operands if o.shape.is_array]
    wanted = [p.wanted(i, index) for index, s in i.shape.leaves() if s.is_array]
    return compute_shardings(i, arrays, wanted, p.mesh, rule=rule, moves=moves)
