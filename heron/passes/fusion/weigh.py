"""What fusing a producer costs and saves, in bytes of memory traffic (work is turned into bytes by the machine's
balance of flops and bandwidth)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from heron.analysis.cost import element_flops
from heron.hlo.instruction import Instruction
from heron.passes.fusion.group import Group


@dataclass(frozen=True, slots=True)
class Machine:
    """``flops_per_byte``: work done in the time one byte comes from memory. ``launch_bytes``: bytes moved in the time
    one more kernel costs to start. ``cache_bytes``: arrays below this are read again almost for free."""

    flops_per_byte: float
    launch_bytes: float
    cache_bytes: float = 1 << 20


#: by kind of target. cpu: ~100 Gflop/s, 15 GB/s, 3 µs to start the pool; gpu: ~40 Tflop/s, 3 TB/s, 2 µs a launch
MACHINES = {"cpu": Machine(6.0, 49_152.0), "gpu": Machine(12.0, 6_000_000.0, 16 << 20)}


def separate(machine: Machine, i: Instruction, groups: Sequence[Group]) -> float:
    """Cost of `i` as a kernel of its own that all `groups` read."""
    work = element_flops(i) * i.shape.num_elements / machine.flops_per_byte
    return machine.launch_bytes + _inputs(i, 1.0, None, machine) + i.shape.byte_size * (1 + len(groups)) + work


def inside(machine: Machine, i: Instruction, group: Group, evaluations: float) -> float:
    """What `group` costs more when it computes `i` itself, `evaluations` times."""
    again = evaluations / max(1, i.shape.num_elements)
    return _inputs(i, again, group, machine) + element_flops(i) * evaluations / machine.flops_per_byte


def _inputs(i: Instruction, again: float, group: Group | None, machine: Machine) -> float:
    """Bytes of operands to read `again` times, without those the group reads anyhow."""
    total = 0.0
    for operand in dict.fromkeys(i.operands):
        size = operand.shape.byte_size
        if group is not None and (operand in group or operand in group.inputs) and again <= 1.0:
            continue
        if i.opcode in ("slice", "dynamic-slice", "gather"):
            size = min(size, i.shape.byte_size)
        times = again if size > machine.cache_bytes else min(again, 1.0) + max(0.0, again - 1.0) * 0.1
        total += size * max(1.0, times) if i.opcode != "broadcast" else size
    return total
