"""Cost and saving of fusing a producer, in bytes of memory traffic. Work is converted to bytes by the machine's balance
of flops and bandwidth."""

from __future__ import annotations

from collections.abc import Iterable

from heron.analysis.cost import element_flops
from heron.hlo.facts import reads_part
from heron.hlo.ir.instruction import Instruction
from heron.passes.fusion.model.group import Group
from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Machine:
    """``flops_per_byte``: work done in the time one byte comes from memory. ``launch_bytes``: bytes moved in the time
    one more kernel costs to start; ``call_bytes``: the same of one with less work than ``small_bytes``, a mere call.
    ``cache_bytes``: arrays below this are read again almost for free. ``multiplies``: kernels do small products.
    ``vectors``: work is counted in vectors."""

    flops_per_byte: float
    launch_bytes: float
    cache_bytes: float = 1 << 20
    call_bytes: float = 0.0
    small_bytes: float = 0.0
    multiplies: bool = False
    vectors: bool = False


#: by kind of target. cpu: ~100 Gflop/s, 15 GB/s, 3 µs to start the pool, 0.1 µs a call, the pool helps from 20 µs of
#: work on; gpu: ~40 Tflop/s, 3 TB/s, 2 µs a launch
MACHINES = {
    "cpu": Machine(6.0, 49_152.0, call_bytes=2048.0, small_bytes=3e5, multiplies=True, vectors=True),
    "gpu": Machine(12.0, 6_000_000.0, 16 << 20),
}


def separate(machine: Machine, i: Instruction, readers: int) -> float:
    """Cost of `i` as a kernel of its own that so many others read."""
    work = element_flops(i) * i.shape.num_elements / machine.flops_per_byte
    read = _inputs(i, dict.fromkeys(i.operands), 1.0, machine)
    moved = read + i.shape.byte_size * (1 + readers) + work
    return moved + (machine.call_bytes if moved < machine.small_bytes else machine.launch_bytes)


def inside(machine: Machine, i: Instruction, counts: Iterable[tuple[Group, float]]) -> list[float]:
    """The extra cost for each group of computing `i` itself, as often as is given with it."""
    size, flops, operands = max(1, i.shape.num_elements), element_flops(i), dict.fromkeys(i.operands)
    found: list[float] = []
    for group, evaluations in counts:
        again = evaluations / size
        if again > 1.0:
            read = _inputs(i, operands, again, machine)
        else:  # not what the group has anyhow
            has, reads = group.evaluations, group.inputs
            new = [o for o in operands if o not in has and o not in reads]
            read = _inputs(i, new, again, machine) if new else 0.0
        slower = group.slower if machine.vectors else 1.0
        found.append(read + flops * evaluations * slower / machine.flops_per_byte)
    return found


def _inputs(i: Instruction, operands: Iterable[Instruction], again: float, machine: Machine) -> float:
    """Bytes to read for some operands of `i`, when it is computed `again` times."""
    if i.opcode == "broadcast":
        return float(sum(o.shape.byte_size for o in operands))
    total, is_part = 0.0, reads_part(i)
    for operand in operands:
        size = operand.shape.byte_size
        if is_part:
            size = min(size, i.shape.byte_size)
        if again > 1.0:
            size *= again if size > machine.cache_bytes else 1.0 + (again - 1.0) * 0.1
        total += size
    return total
