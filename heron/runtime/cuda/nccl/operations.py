"""The calls of NCCL that make up a collective on one device, as plain data.

A piece whose rows do not lie one behind the other takes a call for each row; calls of one collective are one group.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from heron.records import dataclass
from heron.runtime.collectives.exchange import Piece, Way
from heron.runtime.thunks import CollectiveThunk
from heron.targets import libnccl
from heron.targets.libnccl import BYTES


@dataclass(frozen=True, slots=True)
class Zeros:
    """Clear bytes: nobody sends what lies there."""

    target: int
    size: int


@dataclass(frozen=True, slots=True)
class Copy:
    """Bytes of the device's own."""

    target: int
    origin: int
    size: int


@dataclass(frozen=True, slots=True)
class Call:
    """A function of NCCL without its communicator and stream. ``pointers``: what is sent, what is received, or both.
    ``rest``: an op or a rank."""

    function: str
    pointers: tuple[int, ...]
    count: int
    data_type: int
    rest: tuple[int, ...] = ()


Operation = Zeros | Copy | Call


def send(origin: int, size: int, peer: int) -> Call:
    return Call("ncclSend", (origin,), size, BYTES, (peer,))


def receive(target: int, size: int, peer: int) -> Call:
    return Call("ncclRecv", (target,), size, BYTES, (peer,))


@dataclass(frozen=True, slots=True)
class Member:
    """A device in a collective: its ``rank`` in its group, and the numbers of the group's devices."""

    rank: int
    group: tuple[int, ...]

    @staticmethod
    def of(thunk: CollectiveThunk, number: int) -> Member | None:
        """A device's place in the groups of a collective; None if it is in none."""
        group = next((g for g in thunk.groups if number in g), None)
        return None if group is None else Member(group.index(number), group)


def operations(thunk: CollectiveThunk, member: Member | None, addresses: Sequence[int]) -> list[Operation]:
    """The operations of one device. ``addresses``: of the operands, then of the results.

    Arrays of no bytes take none: all members have as few.
    """
    operands, results = addresses[: len(thunk.operands)], addresses[len(thunk.operands) :]
    if member is None:
        return [Zeros(at, s.size) for at, s in zip(results, thunk.results, strict=True) if s.size]
    found: Iterator[Operation]
    match thunk.way:
        case Way.EACH:
            found = _each(thunk.pieces, member, operands, results)
        case Way.PAIRED:
            found = _paired(thunk.pieces, member, operands, results)
        case Way.FROM:
            found = _from(thunk, member, operands, results)
        case Way.REDUCE | Way.ALL_REDUCE:
            found = _reduced(thunk, operands, results)
        case Way.RAGGED:
            raise AssertionError("sizes of ragged pieces are read when the program runs")
    return [o for o in found if not isinstance(o, Call) or o.count]


def _each(
    pieces: Sequence[Piece], member: Member, operands: Sequence[int], results: Sequence[int]
) -> Iterator[Operation]:
    for p, origin, target in zip(pieces, operands, results, strict=True):
        for row in range(p.rows):
            first, there = origin + row * p.from_row, target + row * p.to_row
            if not p.from_rank:
                yield Call("ncclAllGather", (first, there), p.row_bytes, BYTES)
                continue
            for peer in range(len(member.group)):
                yield send(first + peer * p.from_rank, p.row_bytes, peer)
                yield receive(there + peer * p.to_rank, p.row_bytes, peer)


def _paired(
    pieces: Sequence[Piece], member: Member, operands: Sequence[int], results: Sequence[int]
) -> Iterator[Operation]:
    for peer, p in enumerate(pieces):
        yield send(operands[peer], p.operand_bytes, peer)
        yield receive(results[peer], p.operand_bytes, peer)


def _from(
    thunk: CollectiveThunk, member: Member, operands: Sequence[int], results: Sequence[int]
) -> Iterator[Operation]:
    senders = [thunk.senders[n] for n in member.group]
    for p, origin, target in zip(thunk.pieces, operands, results, strict=True):
        if len(set(senders)) == 1 and senders[0] >= 0:
            yield Call("ncclBroadcast", (origin, target), p.operand_bytes, BYTES, (senders[0],))
            continue
        for peer in range(len(member.group)):
            if senders[peer] == member.rank:
                yield send(origin, p.operand_bytes, peer)
        if senders[member.rank] >= 0:
            yield receive(target, p.operand_bytes, senders[member.rank])
        elif p.operand_bytes:
            yield Zeros(target, p.operand_bytes)


def _reduced(thunk: CollectiveThunk, operands: Sequence[int], results: Sequence[int]) -> Iterator[Operation]:
    assert thunk.reduction is not None, "a library combines elements on a GPU"
    for p, origin, target, t in zip(thunk.pieces, operands, results, thunk.reduction.types, strict=True):
        how = libnccl.combination(thunk.reduction.opcode, t, exact=False)
        assert how is not None, "refused when it was compiled"
        if not p.from_rank:
            count = p.rows * p.items * how.count
            yield Call("ncclAllReduce", (origin, target), count, how.data_type, (how.op,))
            continue
        for row in range(p.rows):
            pointers = origin + row * p.from_row, target + row * p.to_row
            yield Call("ncclReduceScatter", pointers, p.items * how.count, how.data_type, (how.op,))
