"""Transfers between devices: the receive and the send of one channel, and their ends."""

from __future__ import annotations

from typing import NamedTuple

from heron.hlo.facts import done_of
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction


class Chain(NamedTuple):
    """The parts of one transfer, in the order that never makes devices wait for each other."""

    recv: Instruction
    send: Instruction
    recv_done: Instruction
    send_done: Instruction


def chains_of(c: Computation) -> list[Chain]:
    """The transfers of a computation whose four ops all stand in it, alone on their channel, in its order."""
    by_channel: dict[int, list[Instruction]] = {}
    for i in c.post_order():
        if i.opcode in ("recv", "send") and not i.is_host_transfer and i.channel_id is not None:
            by_channel.setdefault(i.channel_id, []).append(i)
    chains: list[Chain] = []
    for ends in by_channel.values():
        begun = {i.opcode: i for i in ends}
        done = {n: [u for u in i.users if u.opcode == done_of()[n]] for n, i in begun.items()}
        if len(ends) == len(begun) == 2 and all(len(d) == 1 for d in done.values()):
            chains.append(Chain(begun["recv"], begun["send"], done["recv"][0], done["send"][0]))
    return chains
