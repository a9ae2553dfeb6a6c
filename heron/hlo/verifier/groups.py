"""The meaning and the number of the members of a collective's groups (https://openxla.org/xla/operation_semantics)."""

from __future__ import annotations

import enum

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.replica_groups import Groups, parse


class Mode(enum.Enum):
    """The meaning of the numbers in groups."""

    REPLICAS = "replicas"
    PARTITIONS = "partitions"
    BOTH = "replicas, with all their partitions"
    DEVICES = "devices"


def mode(i: Instruction) -> Mode:
    """The meaning of the numbers in the collective's groups."""
    channel = i.attrs.get("channel_id") is not None
    if "use_global_device_ids" not in i.op.attributes:
        return Mode.PARTITIONS if channel else Mode.REPLICAS
    if not channel:
        return Mode.REPLICAS
    return Mode.DEVICES if i.attrs.get("use_global_device_ids") else Mode.BOTH


def available(i: Instruction) -> int:
    """The module's number of them; 1 also if the module does not state it."""
    assert i.parent is not None and i.parent.module is not None
    module = i.parent.module
    if mode(i) is Mode.PARTITIONS:
        return module.num_partitions
    return module.replica_count * (module.num_partitions if mode(i) is Mode.DEVICES else 1)


def group_size(i: Instruction, groups: Groups) -> int:
    """The number of devices that exchange data with one another."""
    assert i.parent is not None and i.parent.module is not None
    size = len(groups[0]) if groups else available(i)
    return size * (i.parent.module.num_partitions if mode(i) is Mode.BOTH else 1)


def read(i: Instruction) -> Groups:
    """The groups; none stand for one of all. Raises PROTO006, HLO030 for text that is no groups."""
    return parse(i.attrs.get("replica_groups") or "{}")
