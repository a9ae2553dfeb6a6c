"""Questions about all-reduces that several passes ask."""

from __future__ import annotations

from heron.analysis.devices.groups import groups_key
from heron.hlo.facts import combiner, opcodes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait

#: collectives that combine the elements of several devices, in one step: all-reduce, reduce-scatter
REDUCING = opcodes(lambda op: Trait.COLLECTIVE in op.traits and "to_apply" in op.attributes and not op.done)


def is_alone(i: Instruction) -> bool:
    """Whether a collective exchanges one array, and neither control edges nor an async-start hold it in its place."""
    return len(i.operands) == 1 and not i.shape.is_tuple and is_free(i)


def is_free(i: Instruction) -> bool:
    """Whether no control edges ask for an order, and the op is not all that a computation does: an async-start that
    begins the computation would not find it any more."""
    if i.control_predecessors or i.control_successors:
        return False
    c = i.parent
    assert c is not None
    return not i.is_root or c.is_entry or len(c) > 1 + len(i.operands)


def meaning_of(i: Instruction) -> tuple[object, ...] | None:
    """Equal for collectives whose ids mean the same and that reduce by the same op; None for other reducers."""
    opcode = combiner(i.to_apply)
    return None if opcode is None else (opcode, *groups_key(i)[1:])


def reduces_alike(a: Instruction, b: Instruction) -> bool:
    """Whether two reducing collectives do the same in the same groups, with a combiner of one op."""
    same = a.opcode == b.opcode and a.attrs.get("dimensions") == b.attrs.get("dimensions")
    return same and groups_key(a) == groups_key(b) and meaning_of(a) is not None and meaning_of(a) == meaning_of(b)
