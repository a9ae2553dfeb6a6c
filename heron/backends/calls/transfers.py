"""Sends and receives between devices: a send with the receive of its channel is one exchange on GPUs.

All devices run the same schedule, so that a pair is a collective: who sends hands its data over where both have begun.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.backends.devices import Devices
from heron.backends.refusals import no_code
from heron.errors import HeronError
from heron.hlo.ir import replica_groups
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import ShapeIndex
from heron.hlo.verifier.transfers import PAIRS
from heron.runtime.collectives.exchange import Way, whole
from heron.runtime.thunks import CollectiveThunk, CopyThunk, Thunk

if TYPE_CHECKING:
    from heron.backends.lower import Lowering

#: where the data of a transfer stands in its value
_DATA = (0,)


def exchanged(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """The thunks of a send, a receive, or the end of one. Raises GEN002 for transfers that make no exchange."""
    if Trait.FREE in i.op.traits:
        return _named(lowering, i)
    assert i.parent is not None and lowering.module.schedule is not None
    order = lowering.module.schedule[i.parent]
    send, receive = _pair(lowering, i, order)
    first, last = sorted((send, receive), key=order.index)
    ends = [order.index(u) for u in first.users if u.parent is i.parent and Trait.FREE in u.op.traits]
    if any(at < order.index(last) for at in ends):
        raise _refused(lowering, i, f"'{first.name}' ends before '{last.name}' begins")
    thunks: list[Thunk] = _copied(lowering, (send.operands[0], ()), (send, _DATA), send) if i is send else []
    return [*thunks, _exchange(lowering, send, receive)] if i is last else thunks


def _named(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """The end of a transfer: its data is that of the beginning."""
    x = i.operands[0]
    return _copied(lowering, (x, _DATA), (i, _DATA), i) if i.shape.tuple_shapes else []


def _leaves(i: Instruction, at: ShapeIndex) -> list[ShapeIndex]:
    return [(*at, *index) for index, leaf in i.shape.at(at).leaves() if leaf.is_array]


def _copied(
    lowering: Lowering, origin: tuple[Instruction, ShapeIndex], target: tuple[Instruction, ShapeIndex], i: Instruction
) -> list[Thunk]:
    """Copies from one value's arrays to another's, where they lie in different places."""
    found: list[Thunk] = []
    for a, b in zip(_leaves(*origin), _leaves(*target), strict=True):
        here, there = lowering.slice(origin[0], a), lowering.slice(target[0], b)
        if here != there:
            found.append(CopyThunk(here, there, i.name))
    return found


def _pair(lowering: Lowering, i: Instruction, order: list[Instruction]) -> tuple[Instruction, Instruction]:
    """The send and the receive that belong together: as many of their channel come before each."""
    if i.is_host_transfer or lowering.target.sim or not lowering.target.is_gpu:
        raise no_code(i, lowering.target.name)
    alike = [x for x in order if x.op.done == i.op.done and _channel(x) == _channel(i)]
    others = [x for x in order if Trait.CHANNEL in x.op.traits and x.op.done and x.op.done != i.op.done]
    others = [x for x in others if _channel(x) == _channel(i)]
    if len(alike) != len(others) or _text(i) is None:
        why = f"channel {_channel(i)} has {len(alike)} x {i.opcode} and {len(others)} of the other side here"
        raise _refused(lowering, i, why if _text(i) else f"no {PAIRS} says who sends to whom")
    mate = others[alike.index(i)]
    send, receive = (mate, i) if i.operands[0].shape.is_token else (i, mate)
    if _text(mate) != _text(i) or receive.shape.at(_DATA).bare is not send.operands[0].shape.bare:
        raise _refused(lowering, i, f"'{mate.name}' has other pairs or another shape")
    return send, receive


def _channel(i: Instruction) -> int:
    return i.attrs.get("channel_id") or 0


def _text(i: Instruction) -> str | None:
    return i.extras.get("frontend_attributes", {}).get(PAIRS)


def _exchange(lowering: Lowering, send: Instruction, receive: Instruction) -> CollectiveThunk:
    """The exchange in which each device gets the data of the one that sends to it, or zeros."""
    devices = Devices.of(lowering.module)
    across = _channel(send) > 0 and (devices.partitions > 1 or devices.replicas == 1)
    text = _text(send)
    assert text is not None
    given = [(pair[0], pair[1]) for pair in replica_groups.parse(text)]
    groups: tuple[tuple[int, ...], ...] = tuple(
        tuple(r * devices.partitions + p for p in range(devices.partitions)) for r in range(devices.replicas)
    )
    if not across:
        groups = tuple(zip(*groups, strict=True))
    senders = [-1] * devices.count
    for group in groups:
        for source, target in given:
            if max(source, target) >= len(group):
                raise _refused(lowering, send, f"device {max(source, target)} of {len(group)}")
            senders[group[target]] = source
    operands = tuple(lowering.slice(send, index) for index in _leaves(send, _DATA))
    results = tuple(lowering.slice(receive, index) for index in _leaves(receive, _DATA))
    shapes = [send.shape.at(index) for index in _leaves(send, _DATA)]
    pieces = tuple(whole(s.dims, s.element_type.byte_size) for s in shapes)
    return CollectiveThunk("send", Way.FROM, groups, tuple(senders), operands, results, pieces, (), send.name)


def _refused(lowering: Lowering, i: Instruction, why: str) -> HeronError:
    return HeronError(
        "GEN002",
        f"'{i.name}' is half of no exchange that {lowering.target.name} can make",
        where=str(i),
        why=why,
        hint="control-predecessors put send and recv ahead of both -done ops; "
        f"--target sim:{lowering.target.name} runs transfers of any order",
    )
