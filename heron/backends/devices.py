"""Programs for several devices: what of them cannot be compiled for one is refused before code is made."""

from __future__ import annotations

from heron.errors import HeronError
from heron.hlo.facts import is_device_id
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait


def need_one(module: Module, target: str) -> None:
    """Raise GEN012 for the first instruction that asks which device it runs on, or talks to others."""
    count = module.replica_count * module.num_partitions
    if count == 1:
        return
    for i in module.instructions():
        if is_device_id(i) or Trait.COLLECTIVE in i.op.traits:
            raise _refusal(i, module, target, count)


def _refusal(i: Instruction, module: Module, target: str, count: int) -> HeronError:
    does = "asks which device it runs on" if is_device_id(i) else "needs the other devices"
    return HeronError(
        "GEN012",
        # passes split collectives into start and done
        f"{i.opcode.removesuffix('-start')} {does}, and a program compiled for {target} runs on one",
        where=str(i),
        why=f"the module is for {count} devices: replica_count={module.replica_count}, "
        f"num_partitions={module.num_partitions}",
        hint=f"`heron eval` runs it on all {count}; with both counts 1 it compiles for a single device",
    )
