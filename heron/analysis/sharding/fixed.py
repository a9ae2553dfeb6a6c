"""The values of a program whose shardings are not for a search to change."""

from __future__ import annotations

from collections.abc import Iterator

from heron.analysis.sharding.program import ProgramShardings
from heron.hlo import facts
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait


def fixed_values(c: Computation, shardings: ProgramShardings) -> Iterator[Instruction]:
    """Parameters, results, constraints and other custom calls, groups, tuples, and what loops and branches carry."""
    for i in c.instructions:
        if i is c.root or is_fixed(i, shardings):
            yield i
        if _carries(i) and (i.opcode != "tuple" or i is c.root):
            yield from i.operands


def is_fixed(i: Instruction, shardings: ProgramShardings) -> bool:
    """Whether the value is none to change, whatever reads it."""
    return (
        not i.shape.is_array
        or i.opcode == "parameter"
        or i.opcode == "custom-call"
        or i in shardings.groups
        or _carries(i)
    )


def _carries(i: Instruction) -> bool:
    return Trait.CONTROL_FLOW in i.op.traits or facts.is_tuple_op(i) or i.opcode == "opt-barrier"
