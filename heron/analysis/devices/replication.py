"""Values that are equal on all devices of a program, found by walking forward from what is equal."""

from __future__ import annotations

from heron.analysis.devices.groups import device_groups
from heron.hlo.facts import is_device_id
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.hlo.ir.replica_groups import Groups


def replicated_values(c: Computation, module: Module, groups: Groups | None = None) -> set[Instruction]:
    """The values of a computation that are certainly equal on all devices; with `groups`, on all of each group.

    A parameter of the entry computation is equal where its sharding says so. An op without effects gives equal results
    for equal operands. A collective that hands the same to all devices makes values equal.
    """
    among = groups or (tuple(range(module.replica_count * module.num_partitions)),)
    found: set[Instruction] = set()
    for i in c.instructions:
        if _is_replicated(i, found, module, among):
            found.add(i)
    return found


def _is_replicated(i: Instruction, found: set[Instruction], module: Module, among: Groups) -> bool:
    if i.opcode == "parameter":
        return i.parent is module.entry and i.sharding is not None and i.sharding.is_replicated
    if Trait.COLLECTIVE in i.op.traits and makes_equal(i, module, among):
        return True
    if _differs(i) or not all(o in found for o in i.operands):
        return False
    return not any(_differs(inner) or inner.called for called in i.called for inner in called.instructions)


def makes_equal(i: Instruction, module: Module, among: Groups) -> bool:
    """Whether a collective gives every device of a group the same."""
    if Trait.EQUALIZES not in i.op.traits or i.op.done:  # the value of a start may hold the operands
        return False
    own = device_groups(i, module)
    if max(map(len, own)) < max(map(len, among)):
        return False
    home = {device: n for n, group in enumerate(own) for device in group}
    return all(len({home.get(device, -device - 1) for device in group}) == 1 for group in among)


def _differs(i: Instruction) -> bool:
    return is_device_id(i) or i.has_side_effect or not i.op.traits.isdisjoint((Trait.COLLECTIVE, Trait.RANDOM))
