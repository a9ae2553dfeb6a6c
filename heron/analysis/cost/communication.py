"""Time of transfers between devices and to the host, and the ops that transfer while others compute.

An asynchronous op is a pair: its start begins the work, its done waits for the end. Collectives are counted as rings do
them, which need the fewest bytes: each device sends its part from neighbour to neighbour.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod

from heron.analysis.devices.groups import device_groups
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.replica_groups import Groups
from heron.hlo.ir.shape import Shape
from heron.records import dataclass
from heron.targets import Link, Target


@dataclass(frozen=True, slots=True)
class Way:
    """The transfer of an op among `n` devices: ``part(n)`` of the larger of operands and results crosses each link, in
    ``hops(n)`` rounds, and occupies ``resource``.

    ``shrinks``: whether each of n devices of a domain exchanges its nth of the array, and no more, with other domains.
    """

    resource: str
    part: Callable[[int], float]
    hops: Callable[[int], int]
    shrinks: bool = False


@dataclass(frozen=True, slots=True)
class Ring:
    """Devices, or domains of them, that are neighbours on one kind of link."""

    link: Link
    members: int


@dataclass(frozen=True, slots=True)
class Pace:
    """The time of a transfer: ``latency`` seconds, and ``per_byte`` for each byte. ``rings``: the links it crosses."""

    latency: float
    per_byte: float
    rings: tuple[Ring, ...] = ()

    @property
    def members(self) -> int:
        """The number of devices that exchange."""
        return prod(ring.members for ring in self.rings)

    @property
    def links(self) -> str:
        """The names of the links, the nearest first."""
        return ", ".join(ring.link.name for ring in self.rings)


def _once(n: int) -> float:
    return 1.0


def _shared(n: int) -> float:
    return (n - 1) / n


WAYS = {
    "all-reduce": Way("collective", lambda n: 2.0 * (n - 1) / n, lambda n: 2 * (n - 1), shrinks=True),
    "all-gather": Way("collective", _shared, lambda n: n - 1, shrinks=True),
    "reduce-scatter": Way("collective", _shared, lambda n: n - 1, shrinks=True),
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
    found = pace(i, module, target)
    return found.latency + payload_bytes(i) * found.per_byte if found.rings else 0.0


def payload_bytes(i: Instruction) -> int:
    """The bytes of the larger of operands and results."""
    return max(sum(_bytes(o.shape) for o in i.operands), _result_bytes(i))


def pace(i: Instruction, module: Module, target: Target) -> Pace:
    """The time of op `i`, one of `WAYS` (or its -start), of the group that takes the longest.

    Rings are hierarchical: devices of a domain exchange over the nearest link, then domains over the next one. Of a
    module's devices, those of consecutive numbers share a domain.
    """
    opcode = i.opcode.removesuffix("-start")
    pairs = i.attrs.get("source_target_pairs")
    if pairs is not None:
        step = 1 if i.attrs.get("channel_id") is not None else module.num_partitions
        return _pace_of_pairs(opcode, tuple(pairs), step, target.links)
    if "replica_groups" not in i.op.attributes:
        return _pace_of_groups(opcode, ((0, 1),), target.links)
    return _pace_of_groups(opcode, device_groups(i, module), target.links)


@lru_cache(maxsize=256)
def _pace_of_pairs(opcode: str, pairs: tuple[tuple[int, int], ...], step: int, links: tuple[Link, ...]) -> Pace:
    apart = {(a * step, b * step) for a, b in pairs if a != b}
    return _pace_of_groups(opcode, tuple(sorted(apart)), links)


@lru_cache(maxsize=256)
def _pace_of_groups(opcode: str, groups: Groups, links: tuple[Link, ...]) -> Pace:
    paces = {pace_of_rings(opcode, found) for found in {rings(group, links) for group in groups}}
    return max(paces, key=lambda p: (p.per_byte, p.latency), default=Pace(0.0, 0.0))


def rings(group: Sequence[int], links: Sequence[Link]) -> tuple[Ring, ...]:
    """The rings in which devices of these numbers exchange, from the nearest link on."""
    found: list[Ring] = []
    units, size = set(group), 1
    for link in links:
        domains = Counter(unit * size // link.devices if link.devices else 0 for unit in units)
        members = max(domains.values(), default=0)
        if members > 1:
            found.append(Ring(link, members))
        units, size = set(domains), link.devices
    return tuple(found)


def pace_of_rings(opcode: str, found: Sequence[Ring]) -> Pace:
    """The time of an op, one of `WAYS`, in these rings."""
    way, left, latency, per_byte = WAYS[opcode], 1.0, 0.0, 0.0
    for ring in found:
        latency += way.hops(ring.members) * ring.link.seconds
        per_byte += left * way.part(ring.members) / ring.link.bandwidth
        left /= ring.members if way.shrinks else 1
    return Pace(latency, per_byte, tuple(found))


def copy_seconds(i: Instruction, target: Target) -> float:
    """Seconds of a copy or copy-start: to or from the host over its link, else one read and one write of memory."""
    size = _bytes(i.operands[0].shape)
    if any(s.is_on_host for shape in (i.shape, i.operands[0].shape) for _, s in shape.leaves()):
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
