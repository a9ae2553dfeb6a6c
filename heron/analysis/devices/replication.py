"""Values that are equal on all devices of a program, found by walking forward from what is equal."""

from __future__ import annotations

from heron.analysis.devices.groups import device_groups
from heron.hlo.facts import is_device_id
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait


def replicated_values(c: Computation, module: Module) -> set[Instruction]:
    """The values of a computation that are certainly equal on all devices.

    A parameter of the entry computation is equal where its sharding says so. An op without effects gives equal results
    for equal operands. A collective that hands the same to all devices makes values equal.
    """
    found: set[Instruction] = set()
    for i in c.instructions:
        if _is_replicated(i, found, module):
            found.add(i)
    return found


def _is_replicated(i: Instruction, found: set[Instruction], module: Module) -> bool:
    if i.opcode == "parameter":
        return i.parent is module.entry and i.sharding is not None and i.sharding.is_replicated
    if Trait.COLLECTIVE in i.op.traits:
        return makes_equal(i, module)
    if _differs(i) or not all(o in found for o in i.operands):
        return False
    return not any(_differs(inner) or inner.called for called in i.called for inner in called.instructions)


def makes_equal(i: Instruction, module: Module) -> bool:
    """Whether a collective gives every device of the program the same."""
    if Trait.EQUALIZES not in i.op.traits or i.op.done:  # the value of a start may hold the operands
        return False
    groups = device_groups(i, module)
    return len(groups) == 1 and len(groups[0]) == module.replica_count * module.num_partitions


def _differs(i: Instruction) -> bool:
    return is_device_id(i) or i.has_side_effect or not i.op.traits.isdisjoint((Trait.COLLECTIVE, Trait.RANDOM))
