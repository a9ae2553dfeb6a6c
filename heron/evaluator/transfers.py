"""send and recv: between a device and its host, or from device to device.

Sending never waits; recv-done does. Among devices, the frontend attribute ``_xla_send_recv_source_target_pairs`` tells
who sends to whom. Without it, a channel leads from the one device that sends on it to the one that receives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heron.errors import HeronError
from heron.evaluator import groups
from heron.hlo.ir import replica_groups

if TYPE_CHECKING:
    from heron.evaluator.walker import Evaluator
    from heron.hlo.ir.instruction import Instruction

_PAIRS = "_xla_send_recv_source_target_pairs"
#: marks a recv that nobody sends to
_NOBODY = object()


def send(ev: Evaluator, i: Instruction, value: Any) -> None:
    """Hand `value` over to whoever receives it."""
    if i.is_host_transfer:
        ev.host.send(_channel(i), value)
        return
    pairs, me = _pairs(ev, i), ev.device.number
    if pairs is None:
        ev.world.mail[_only(ev, i, "sends")].append(value)
        return
    for source, target in pairs:
        if source == me:
            ev.world.mail[_channel(i), source, target].append(value)


def begin(ev: Evaluator, i: Instruction) -> np.ndarray:
    """Begin to receive; the ticket given back tells `finish` what to wait for."""
    if i.is_host_transfer:
        key = None
    elif (pairs := _pairs(ev, i)) is None:
        key = _only(ev, i, "receives")
    else:
        source = next((s for s, t in pairs if t == ev.device.number), None)
        key = _NOBODY if source is None else (_channel(i), source, ev.device.number)
    ev.transfers.append((i, key))
    return np.array(len(ev.transfers) - 1, np.uint32)


def finish(ev: Evaluator, i: Instruction, ticket: np.ndarray, zeros: Any) -> Any:
    """Wait for what was sent; zeros for a device nobody sends to. Raises EVAL006, EVAL007."""
    recv, key = ev.transfers[int(ticket)]
    if key is None:
        return ev.from_host(recv.shape.at((0,)), ev.host.next_received(_channel(recv)))
    if key is _NOBODY:
        return zeros
    box = ev.world.mail[key]
    ev.world.wait(ev.device, i, lambda: len(box) > 0)
    return box.popleft()


def _channel(i: Instruction) -> int:
    return i.attrs.get("channel_id") or 0


def _pairs(ev: Evaluator, i: Instruction) -> list[tuple[int, int]] | None:
    """(source, target) devices; None when the program does not tell."""
    text = i.extras.get("frontend_attributes", {}).get(_PAIRS)
    if text is None:
        return None
    world = ev.world
    across = _channel(i) > 0 and (world.partitions > 1 or world.replicas == 1)
    pairs = replica_groups.parse(text)
    if any(len(pair) != 2 for pair in pairs):
        raise HeronError("EVAL004", f"'{i.opcode}': {_PAIRS} must hold pairs", why=text)
    return groups.to_pairs(ev, i, pairs, across)


def _only(ev: Evaluator, i: Instruction, does: str) -> tuple[int]:
    """The key of a channel with one end a side. Raises EVAL004 when another device has that end already."""
    channel, me = _channel(i), ev.device
    if ev.world.ends.setdefault((channel, does), me) is not me:
        raise HeronError(
            "EVAL004",
            f"a second device {does} on channel {channel}",
            why=f"{ev.world.ends[channel, does]} and {me}",
            hint=f"frontend_attributes={{{_PAIRS}=...}} tells who sends to whom",
        )
    return (channel,)
