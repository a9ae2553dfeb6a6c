"""Channels: the ids by which sends, receives and collectives find their other side."""

from __future__ import annotations

from collections.abc import Iterator

from heron.hlo.facts import opcodes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.hlo.verifier.rules import Problem, rule

#: ops that begin a transfer
TRANSFERS = opcodes(lambda op: Trait.CHANNEL in op.traits and bool(op.done))


@rule("HLO136", on=TRANSFERS)
def halves_share_their_channel(i: Instruction) -> Iterator[Problem]:
    """A send or receive and its done have one channel id and are both with the host, or both not."""
    if i.attrs.get("channel_id") is None:
        return
    for done in i.users:
        if done.opcode != i.opcode + "-done":
            continue
        for name, default in (("channel_id", None), ("is_host_transfer", False)):
            here, there = i.attrs.get(name, default), done.attrs.get(name, default)
            if here != there:
                why = f"'{i.name}' has {name}={here}, '{done.name}' {name}={there}"
                yield Problem("HLO136", f"'{i.name}' and '{done.name}' differ in {name}", done, why=why)


@rule("HLO137")
def host_channels_are_used_alike(module: Module) -> Iterator[Problem]:
    """Sends (or receives) that share a channel with the host transfer the same shapes in the same way."""
    first: dict[int, Instruction] = {}
    for i in module.instructions():
        if i.opcode not in TRANSFERS or not i.attrs.get("is_host_transfer"):
            continue
        channel = i.attrs.get("channel_id")
        if channel is None:
            continue
        other = first.setdefault(channel, i)
        same = other.opcode == i.opcode and other.shape is i.shape and _attributes(other) == _attributes(i)
        if not same:
            what = f"'{other.name}' and '{i.name}' share channel {channel} with the host, but differ"
            yield Problem("HLO137", what, i, why=f"{other.opcode} of {other.shape} and {i.opcode} of {i.shape}")


def _attributes(i: Instruction) -> tuple[object, object]:
    return i.attrs, i.extras.get("frontend_attributes")


@rule("HLO138", mode="unique_channel_ids")
def channels_serve_one_kind(module: Module) -> Iterator[Problem]:
    """A channel id is used by one kind of op, or by the four halves of sends and receives."""
    first: dict[int, Instruction] = {}
    for i in module.instructions():
        channel = i.attrs.get("channel_id") if i.attrs else None
        if channel is None:
            continue
        other = first.setdefault(channel, i)
        if other.opcode != i.opcode and not (other.has(Trait.CHANNEL) and i.has(Trait.CHANNEL)):
            what = f"'{other.name}' ({other.opcode}) and '{i.name}' ({i.opcode}) share channel {channel}"
            yield Problem("HLO138", what, i)


@rule("HLO139", on=("all-reduce", "all-reduce-start"))
def channels_of_all_reduces_are_positive(i: Instruction) -> Iterator[Problem]:
    """The channel id of an all-reduce, if it has one, is at least 1."""
    channel = i.attrs.get("channel_id")
    if channel is not None and channel < 1:
        yield Problem("HLO139", f"'{i.name}' has channel_id={channel}", i, why="channels of all-reduces count from 1")
