"""The devices that take part in a collective with this device, in order.

Ids in `replica_groups` and `source_target_pairs` mean different things (the op's channel_id and use_global_device_ids
tell): replicas of the same partition, partitions of the same replica, replicas with all their partitions, or devices
numbered over all. Source: https://openxla.org/stablehlo/spec#collective-ops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from heron.errors import HeronError
from heron.hlo.ir import replica_groups
from heron.hlo.ir.evaluation import Members

if TYPE_CHECKING:
    from heron.evaluator.walker import Evaluator
    from heron.hlo.ir.instruction import Instruction


def exchange(ev: Evaluator, i: Instruction, members: Members, value: Any, work: Callable[[list[Any]], Any]) -> Any:
    """``work(values)`` of the values all members bring, done once for all of them."""
    kind = i.opcode.removesuffix("-start")
    channel = i.attrs.get("channel_id")
    # by name, for ops on arrays of dynamic size are instructions of their own on every device
    return ev.world.meet(
        ev.device, i, (kind, channel if channel is not None else i.name, members), members, value, work
    )


def members(ev: Evaluator, i: Instruction) -> Members | None:
    """The devices of this one's group, itself included; None when it is in no group.

    Raises EVAL004 for ids beyond the devices there are.
    """
    me, world = ev.device, ev.world
    groups = replica_groups.parse(i.attrs.get("replica_groups") or "{}")
    over_channel, global_ids = i.attrs.get("channel_id") is not None, i.attrs.get("use_global_device_ids", False)
    if global_ids and not over_channel:
        raise HeronError("EVAL004", f"'{i.opcode}' has use_global_device_ids, which needs a channel_id")
    if global_ids:
        return _own(i, groups or (tuple(range(len(world.devices))),), me.number, len(world.devices), "device")
    if over_channel and "use_global_device_ids" not in i.op.attributes:
        partitions = _own(i, groups, me.partition, world.partitions, "partition")
        return None if partitions is None else to_devices(ev, partitions, True)
    replicas = _own(i, groups, me.replica, world.replicas, "replica")
    if replicas is None:
        return None
    if not over_channel:
        return to_devices(ev, replicas, False)
    return tuple(r * world.partitions + p for r in replicas for p in range(world.partitions))


def needed(ev: Evaluator, i: Instruction) -> Members:
    """Like `members`; raises EVAL004 when this device is in no group."""
    found = members(ev, i)
    if found is None:
        raise HeronError(
            "EVAL004", f"{ev.device} is in no group of '{i.opcode}'", why=f"replica_groups={i.replica_groups}"
        )
    return found


def permuted_pairs(ev: Evaluator, i: Instruction) -> list[tuple[int, int]]:
    """(source, target) devices, among the replicas of this partition or the partitions of this replica."""
    across = i.channel_id is not None
    return to_pairs(ev, i, i.source_target_pairs, across)


def to_pairs(ev: Evaluator, i: Instruction, pairs: Sequence[Sequence[int]], partitions: bool) -> list[tuple[int, int]]:
    """Pairs of ids as pairs of device numbers. Raises EVAL004 for an id that no device has."""
    what, count = ("partition", ev.world.partitions) if partitions else ("replica", ev.world.replicas)
    found: list[tuple[int, int]] = []
    for pair in pairs:
        need_ids(i, pair, count, what)
        source, target = to_devices(ev, pair, partitions)
        found.append((source, target))
    return found


def to_devices(ev: Evaluator, ids: Sequence[int], partitions: bool) -> Members:
    """Numbers of the devices that those partitions of this replica are, or replicas of this partition."""
    me, count = ev.device, ev.world.partitions
    return tuple(me.replica * count + n if partitions else n * count + me.partition for n in ids)


def need_ids(i: Instruction, ids: Sequence[int], count: int, what: str) -> None:
    """Raises EVAL004 for an id that no device has."""
    for n in ids:
        if not 0 <= n < count:
            there = f"there is 1 {what}" if count == 1 else f"there are {count} {what}s"
            raise HeronError(
                "EVAL004",
                f"'{i.opcode}' needs several devices: it names {what} {n}",
                why=f"{there}, counted from 0",
                hint="`evaluate_devices` (`heron eval --devices N`) runs a program on several",
            )


def _own(i: Instruction, groups: replica_groups.Groups, me: int, count: int, what: str) -> Members | None:
    """The group `me` is in; without groups, all."""
    if not groups:
        return tuple(range(count))
    for group in groups:
        need_ids(i, group, count, what)
    return next((g for g in groups if me in g), None)
