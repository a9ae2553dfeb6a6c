"""The attributes of collectives that a pass makes: groups by numbers of devices, and channels of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Any

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.replica_groups import spelled


def free_channels(module: Module) -> Iterator[int]:
    """Channels that no instruction has yet, found when the first is asked for."""
    used = max((i.attrs.get("channel_id") or 0 for i in module.instructions()), default=0)
    yield from count(used + 1)


def among(i: Instruction, groups: Iterable[Iterable[int]], module: Module, channels: Iterator[int]) -> dict[str, Any]:
    """The attributes of the all-reduce, all-gather or reduce-scatter `i`, in groups of global numbers of devices.

    Replicas of one partition each are devices; else the ids are global ones, which need a channel.
    """
    attrs = {**i.attrs, "replica_groups": spelled(groups)}
    if attrs.get("channel_id") is not None:
        attrs["channel_id"] = next(channels)
    if module.num_partitions > 1:
        attrs["channel_id"] = attrs.get("channel_id") or next(channels)
        attrs["use_global_device_ids"] = True
    return attrs


def permuted(x: Instruction, pairs: Sequence[tuple[int, int]], module: Module, channels: Iterator[int]) -> Instruction:
    """`x` sent from sources to targets, in a program of partitions of one replica or of replicas of one partition."""
    assert x.parent is not None
    channel: dict[str, Any] = {"channel_id": next(channels)} if module.num_partitions > 1 else {}
    return x.parent.add("collective-permute", [x], x.shape, like=x, source_target_pairs=tuple(pairs), **channel)
