"""Time of transfers between devices and to the host, and the ops that transfer while others compute.

An asynchronous op is a pair: its start begins the work, its done waits for the end. Collectives are counted as rings do
them, which need the fewest bytes: each device sends its part from neighbour to neighbour.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from heron.analysis.devices.groups import device_groups
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape
from heron.targets import Target

#: memory space of a layout that is the host's
HOST_SPACE = 5


@dataclass(frozen=True, slots=True)
class Way:
    """The transfer of an op among `n` devices: ``part(n)`` of the larger of operands and results crosses each link, in
    ``hops(n)`` rounds, and occupies ``resource``."""

    resource: str
    part: Callable[[int], float]
    hops: Callable[[int], int]


def _once(n: int) -> float:
    return 1.0


def _shared(n: int) -> float:
    return (n - 1) / n


WAYS = {
    "all-reduce": Way("collective", lambda n: 2.0 * (n - 1) / n, lambda n: 2 * (n - 1)),
    "all-gather": Way("collective", _shared, lambda n: n - 1),
    "reduce-scatter": Way("collective", _shared, lambda n: n - 1),
    "all-to-all": Way("collective", _shared, lambda n: 1),
    "ragged-all-to-all": Way("collective", _shared, lambda n: 1),
    "collective-broadcast": Way("collective", _once, lambda n: 1),
    "collective-permute": Way("permute", _once, lambda n: 1),
    "send": Way("transfer", _once, lambda n: 1),
    "recv": Way("transfer", _once, lambda n: 1),
}


def communicates(i: Instruction) -> Instruction | None:
    """The op that talks to other devices when `i` runs: itself (or what its name ends in ``-start`` of), or the one op
    of the computation that an async-start begins; None when it does not."""
    if i.opcode == "async-start":
        root = i.calls.root
        return root if root.opcode in WAYS else None
    return i if i.opcode.removesuffix("-start") in WAYS else None


def link_seconds(i: Instruction, module: Module, target: Target) -> float:
    """Seconds that op `i`, one of `WAYS` (or its -start), takes among the devices of `module`."""
    way = WAYS[i.opcode.removesuffix("-start")]
    n = group_size(i, module)
    if n < 2:
        return 0.0
    payload = max(sum(_bytes(o.shape) for o in i.operands), _result_bytes(i))
    return payload * way.part(n) / target.link_bandwidth + way.hops(n) * target.link_seconds


def copy_seconds(i: Instruction, target: Target) -> float:
    """Seconds of a copy-start: to or from the host over its link, else one read and one write of memory."""
    size = _bytes(i.operands[0].shape)
    spaces = {s.layout.memory_space for _, s in i.shape.leaves() if s.is_array and s.layout is not None}
    if HOST_SPACE in spaces:
        return size / target.host_bandwidth
    return 2 * size / target.memory_bandwidth


def group_size(i: Instruction, module: Module) -> int:
    """Devices in the largest group; two for ops that talk to one other device."""
    if "replica_groups" not in i.op.attributes:
        return 2
    return max(map(len, device_groups(i, module)))


def _result_bytes(i: Instruction) -> int:
    """Bytes of the results alone, where the value of a start holds operands too."""
    return _bytes(i.shape.at((1,)) if i.op.holds_operands else i.shape)


def _bytes(shape: Shape) -> int:
    return sum(s.byte_size for _, s in shape.leaves() if s.is_array)
