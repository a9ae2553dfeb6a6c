"""Questions about all-reduces that several passes ask."""

from __future__ import annotations

from heron.analysis.devices.groups import groups_key
from heron.hlo.facts import combiner
from heron.hlo.ir.instruction import Instruction


def is_alone(i: Instruction) -> bool:
    """Whether a collective exchanges one array and control edges ask for no order."""
    return len(i.operands) == 1 and not i.shape.is_tuple and not (i.control_predecessors or i.control_successors)


def meaning_of(i: Instruction) -> tuple[object, ...] | None:
    """Equal for collectives whose ids mean the same and that reduce by the same op; None for other reducers."""
    opcode = combiner(i.to_apply)
    return None if opcode is None else (opcode, *groups_key(i)[1:])


def reduces_alike(a: Instruction, b: Instruction) -> bool:
    """Whether two reducing collectives do the same in the same groups, with a combiner of one op."""
    same = a.opcode == b.opcode and a.attrs.get("dimensions") == b.attrs.get("dimensions")
    return same and groups_key(a) == groups_key(b) and meaning_of(a) is not None and meaning_of(a) == meaning_of(b)
