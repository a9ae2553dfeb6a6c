"""collective-select-folder: a permute takes the one of two values that all its senders would choose."""

from __future__ import annotations

import numpy as np

from heron.analysis.devices.groups import device_pairs
from heron.analysis.devices.per_device import per_device
from heron.hlo.facts import is_generated
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.collectives.model.reductions import is_alone
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class CollectiveSelectFolder(Pass):
    """Lets a collective-permute send one side of a select, where all devices that send anything choose that side.

    The choice may depend on the number of the device alone; it is computed for every device, however it is spelled. A
    stage of a pipeline then need not wait for the value that only another stage sends.

    HloModule example, replica_count=2

    id = u32[] replica-id()
    last = u32[] constant(1)
    is_last = pred[] compare(id, last), direction=EQ
    all = pred[4] broadcast(is_last), dimensions={}
    s = f32[4] select(all, f32[4] x, f32[4] y)
    ROOT p = f32[4] collective-permute(s), source_target_pairs={{1,0}}
    ->
    HloModule example, replica_count=2

    ROOT p = f32[4] collective-permute(x), source_target_pairs={{1,0}}
    """

    name = "collective-select-folder"

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            for i in c.instructions:
                while i.opcode == "collective-permute" and is_alone(i) and i.operands[0].opcode == "select":
                    side = _side(i, module)
                    if side is None:
                        break
                    (chosen,) = i.operands
                    i.set_operand(0, chosen.operands[side])
                    c.remove_dead_from(chosen)
                    ctx.decide(True, "all devices that send choose one side", subject=i.name)
                    changed = True
        return changed


def _side(i: Instruction, module: Module) -> int | None:
    """The operand of the select that all senders choose."""
    (chosen,) = i.operands
    choice = chosen.operands[0]
    while is_generated(choice) and choice.operands:
        choice = choice.operands[0]
    sides = per_device(choice, module)
    senders = sorted({source for source, _ in device_pairs(i, module)})
    if sides is None or not senders or len(np.unique(sides[senders])) != 1:
        return None
    return 1 if sides[senders[0]] else 2
