"""Replica groups: who takes part in a collective, read from the text they are kept as.

Groups name replicas, partitions or devices, by the collective's mode (https://openxla.org/xla/operation_semantics,
collective ops). Groups written as an iota are not spelled out: a few digits may stand for millions of devices.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from heron.errors import HeronError
from heron.hlo.instruction import Instruction

_IDS = r"\{(?:\d{1,18}(?:,\d{1,18})*)?\}"
_LIST = re.compile(rf"\{{(?:{_IDS}(?:,{_IDS})*)?\}}")
_IOTA = re.compile(r"\[(\d{1,18}),(\d{1,18})\]<=\[(\d{1,18}(?:,\d{1,18})*)\](?:T\((\d+(?:,\d+)*)\))?")


class Mode(enum.Enum):
    """What the numbers in groups count."""

    REPLICAS = "replicas"
    PARTITIONS = "partitions"
    BOTH = "replicas, with all their partitions"
    DEVICES = "devices"


@dataclass(frozen=True, slots=True)
class Groups:
    """Sizes of the groups; `ids` of all of them one behind the other, None where they are 0 to n - 1 in some order."""

    sizes: tuple[int, ...]
    ids: tuple[int, ...] | None
    count: int
    uniform: bool

    @property
    def total(self) -> int:
        """How many ids there are."""
        return len(self.ids) if self.ids is not None else self.sizes[0] * self.count


def mode(i: Instruction) -> Mode:
    """What the collective's groups count."""
    channel = i.attrs.get("channel_id") is not None
    if "use_global_device_ids" not in i.op.attributes:
        return Mode.PARTITIONS if channel else Mode.REPLICAS
    if not channel:
        return Mode.REPLICAS
    return Mode.DEVICES if i.attrs.get("use_global_device_ids") else Mode.BOTH


def available(i: Instruction) -> int:
    """How many of them the module says there are; 1 also means that it does not say."""
    assert i.parent is not None and i.parent.module is not None
    module = i.parent.module
    if mode(i) is Mode.PARTITIONS:
        return module.num_partitions
    return module.replica_count * (module.num_partitions if mode(i) is Mode.DEVICES else 1)


def group_size(i: Instruction) -> int:
    """How many devices exchange data with one another."""
    assert i.parent is not None and i.parent.module is not None
    groups = read(i.attrs.get("replica_groups", "{}"))
    size = groups.sizes[0] if groups.count else available(i)
    return size * (i.parent.module.num_partitions if mode(i) is Mode.BOTH else 1)


@lru_cache(maxsize=512)
def read(text: str) -> Groups:
    """The groups of ``{{0,1},{2,3}}``, ``[2,4]<=[4,2]T(1,0)`` or ``mesh['x'=2,'y'=4] {'x'}``; ``{}`` has none.

    Raises PROTO006 for anything else.
    """
    compact = text.replace(" ", "")
    if _LIST.fullmatch(compact):
        lists = [tuple(map(int, ids.split(","))) if ids else () for ids in re.findall(r"\{([\d,]*)\}", compact[1:-1])]
        sizes = tuple(map(len, lists))
        return Groups(sizes, tuple(n for ids in lists for n in ids), len(lists), len(set(sizes)) < 2)
    iota = _IOTA.fullmatch(compact)
    if iota is not None:
        count, size = int(iota[1]), int(iota[2])
        dims = [int(d) for d in iota[3].split(",")]
        order = [int(d) for d in iota[4].split(",")] if iota[4] else list(range(len(dims)))
        if count * size == prod(dims) and sorted(order) == list(range(len(dims))):
            return Groups((size,), None, count, True)
        raise HeronError("PROTO006", "these groups are no rearrangement", where=text[:200], why=f"{count} x {size}")
    return _mesh_groups(text)


def _mesh_groups(text: str) -> Groups:
    """Groups along axes of a mesh."""
    from heron.hlo.proto.groups import write_groups
    from heron.hlo.proto.schema import MESSAGES

    message = MESSAGES["HloInstructionProto"]()
    write_groups(text, message)
    found = message.mesh_axes_replica_group_list
    sizes = [a.size for a in found.mesh.axes]
    size = prod(a.sub_axis_info.size if a.HasField("sub_axis_info") else sizes[a.mesh_axis_index] for a in found.axes)
    if size < 1 or prod(sizes) % size:
        raise HeronError("PROTO006", "the axes do not divide their mesh", where=text[:200], why=f"{size} in {sizes}")
    return Groups((size,), None, prod(sizes) // size, True)
