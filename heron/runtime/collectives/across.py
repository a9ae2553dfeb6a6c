"""Collectives over processes: arrays of members that are elsewhere are brought here.

When the members of one process have met, the first of them hands their arrays to the other processes of the clique and
takes theirs: the parts that the other members need. The slots of members elsewhere are filled with what came, and each
member computes its results as if all were here, so that values do not depend on how devices are spread over processes.
"""

from __future__ import annotations

import ctypes
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from heron.errors import HeronError
from heron.runtime.collectives.channel import channel
from heron.runtime.collectives.mpi import library
from heron.runtime.collectives.parts import Message, Part, of_arrays, of_chunks
from heron.runtime.collectives.shared_launch import SharedLaunch, Title
from heron.runtime.collectives.state import ARRAYS, SLOT, Clique, Op, Piece, Slot, World, chunk_numbers

_HEAD = np.dtype([("op", np.int64), ("content", np.int64)])


class Exchange:
    """Brings the arrays of members of other processes, for the cliques of one launch after another.

    ``processes``: of each device. ``timeout``: seconds that the other processes have to come to their first meeting,
    0: no limit. Raises RUN088, RUN083 as `channel` does.
    """

    def __init__(
        self,
        title: Title,
        groups: Sequence[Sequence[int]],
        processes: Sequence[int],
        names: Sequence[str],
        timeout: int,
    ) -> None:
        self.title, self.groups, self.processes, self.names = title, groups, processes, names
        self.channel = channel(timeout)
        #: what was raised in an exchange, to be raised by who waits for the launch
        self.failure: BaseException | None = None
        self.launch: SharedLaunch | None = None
        self._kept: dict[int, Any] = {}  # by clique: arrays of others, until the next exchange
        kind = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4, ctypes.c_int32)
        self._native = kind(self._call)
        self.address = ctypes.cast(self._native, ctypes.c_void_p).value or 0

    # -- a launch ----------------------------------------------------------------------------------------------------
    def begin(self, timeout: int) -> None:
        """Begin a launch together with the others. Raises RUN081, RUN082, RUN088."""
        self.failure = None
        launch = SharedLaunch(self.channel, self.title, sorted(set(self.processes)), timeout)
        launch.begin()
        self.launch = launch

    def end(self) -> None:
        """All devices of this process have ended."""
        if self.launch is not None:
            self.launch.end()

    def give_up(self, error: BaseException) -> None:
        """The launch has failed here."""
        if self.launch is not None:
            self.launch.give_up(error)

    # -- a collective ------------------------------------------------------------------------------------------------
    def _call(self, clique: int, op: int, row: int, world: int, what: int) -> int:
        try:
            meeting = _Meeting(self, Clique.from_address(clique), Op.from_address(op), row, World.from_address(world))
            return int(not (meeting.bring() if what == ARRAYS else meeting.share()))
        except BaseException as error:  # must not cross native frames
            self.failure = error
            return 1

    def keep(self, clique: int, memory: Any) -> None:
        """Let the arrays of a meeting live until the next one of the clique."""
        self._kept[clique] = memory


class _Meeting:
    """Members of a clique at a collective, of which others are elsewhere.

    ``own``: ranks of those that are here; ``others``: of the others, by process.
    """

    def __init__(self, exchange: Exchange, clique: Clique, op: Op, row: int, world: World) -> None:
        self.exchange, self.clique, self.op, self.row, self.world = exchange, clique, op, row, world
        self.members = exchange.groups[clique.number]
        self.others: dict[int, list[int]] = {}
        for rank, member in enumerate(self.members):
            self.others.setdefault(exchange.processes[member], []).append(rank)
        self.own = self.others.pop(exchange.channel.rank)
        self.chunks = chunk_numbers(self.members, exchange.processes)

    def bring(self) -> bool:
        """Whether the parts of arrays that are needed here have come; not where devices are to stop."""
        away = {p: self._message(of_arrays(self.op, *self._whose(self.own, r))) for p, r in self.others.items()}
        coming = {p: self._message(of_arrays(self.op, *self._whose(r, self.own))) for p, r in self.others.items()}
        messages = self._exchanged(away, coming, [_table(self.row, rank) for rank in range(len(self.members))])
        kept: list[Any] = []
        for p, ranks in self.others.items() if messages else ():
            arrays, memory = coming[p].addresses(messages[p])
            kept += memory
            nothing: list[int | None] = [None] * self.op.arrays
            kept += [_fill(self.row, rank, self.op, arrays.get(rank, nothing)) for rank in ranks]
        self.exchange.keep(self.clique.number, kept)
        return bool(messages)

    def share(self) -> bool:
        """The same for the chunks of sums that others have computed: they are copied to the results of all members."""
        size = len(self.members)
        own = self._message(of_chunks(self.op, self.own[0], [self.chunks[r] for r in self.own], size))
        coming = {
            p: self._message(of_chunks(self.op, ranks[0], [self.chunks[r] for r in ranks], size))
            for p, ranks in self.others.items()
        }
        results = {rank: _table(self.row, rank)[self.op.arrays : 2 * self.op.arrays] for rank in self.own}
        messages = self._exchanged(dict.fromkeys(coming, own), coming, results)
        for p, message in messages.items():
            for rank in self.own:
                coming[p].unpack(message, results[rank])
        return bool(messages)

    def _whose(
        self, senders: Sequence[int], receivers: Sequence[int]
    ) -> tuple[Sequence[int], Sequence[int], Sequence[int], Sequence[int]]:
        """Arguments of `of_arrays`."""
        wanted: list[int] = []
        if self.op.senders:
            places = (ctypes.c_int32 * len(self.exchange.processes)).from_address(self.op.senders)
            wanted = [places[self.members[rank]] for rank in receivers]
        return senders, receivers, wanted, self.chunks

    def _message(self, parts: Iterable[Part]) -> Message:
        return Message(self.op, len(self.members), list(parts))

    def _exchanged(
        self, away: Mapping[int, Message], coming: Mapping[int, Message], arrays: Any
    ) -> dict[int, np.ndarray]:
        """The messages of the other processes; none where devices are to stop."""
        exchange, launch = self.exchange, self.exchange.launch
        if launch is None or self.world.failed:  # a device has failed before: its arrays are not what they should be
            return {}
        tag = 1 + (launch.number * len(exchange.groups) + self.clique.number) % (exchange.channel.tags - 1)
        head = self._head()
        sent = {p: np.empty(message.bytes, np.uint8) for p, message in away.items()}
        for p, message in away.items():
            sent[p][: _HEAD.itemsize] = head.view(np.uint8)
            message.pack(sent[p], arrays)
        incoming = {p: np.empty(message.bytes, np.uint8) for p, message in coming.items()}
        transfer = _Transfer(exchange.channel.comm, tag, sent, incoming)
        try:
            place = str(exchange.names[self.op.number])
            if not launch.wait(transfer.is_over, place, transfer.lacking, lambda: self.world.failed):
                return {}
        finally:
            if not transfer.is_complete:
                exchange.channel.lost.append(transfer)
        self._need_same(transfer.incoming, head[0])
        return transfer.incoming

    def _head(self) -> np.ndarray:
        """The head of a message: the collective's number, and a digest of its content."""
        op = self.op
        title, pieces = f"{self.exchange.names[op.number]} {op.way}", (Piece * op.arrays).from_address(op.pieces)
        return np.array([(op.number, zlib.crc32(bytes(pieces), zlib.crc32(title.encode())))], _HEAD)

    def _need_same(self, messages: Mapping[int, np.ndarray], own: Any) -> None:
        """Raise RUN087 unless all processes of the clique are at the same collective, by its number and its content."""
        names, rank = self.exchange.names, self.exchange.channel.rank
        for process, message in messages.items():
            [theirs] = message[: _HEAD.itemsize].view(_HEAD)
            if theirs == own:
                continue
            there = int(theirs["op"])
            name = names[there] if 0 <= there < len(names) else f"collective {there}"
            raise HeronError(
                "RUN087",
                "processes are at different collectives",
                why=f"process {rank} is at {names[int(own['op'])]}, process {process} at {name}",
                hint="all processes must come to the same collectives in the same order",
            )


class _Transfer:
    """One message to each of some processes, and one from each."""

    def __init__(self, comm: Any, tag: int, messages: dict[int, np.ndarray], incoming: dict[int, np.ndarray]) -> None:
        self._comm, self._tag, self._messages, self.incoming = comm, tag, messages, incoming
        self._sent = {p: comm.Isend(message, p, tag) for p, message in messages.items()}
        self._coming: dict[int, Any] = {}
        self._missing = list(incoming)

    @property
    def is_complete(self) -> bool:
        return not self._missing and not self._sent

    def lacking(self) -> list[int]:
        """The processes whose message is not there, or that do not take this one's."""
        return self._missing or list(self._sent)

    def is_over(self) -> bool:
        """Look after the messages: whether all are there, and gone."""
        for p in self._missing:
            if p not in self._coming:
                self._look_for(p)
        self._missing = [p for p in self._missing if p not in self._coming or not self._coming[p].Test()]
        self._sent = {p: r for p, r in self._sent.items() if not r.Test()}
        return self.is_complete

    def _look_for(self, process: int) -> None:
        """Take the message of a process when it comes, of whatever size: a wrong one has another head."""
        mpi = library()
        status = mpi.Status()
        found = self._comm.Improbe(process, self._tag, status)
        if found is not None:
            size = status.Get_count(mpi.BYTE)
            if size != self.incoming[process].size:
                self.incoming[process] = np.empty(size, np.uint8)
            self._coming[process] = found.Irecv(self.incoming[process])


def _table(row: int, rank: int) -> Any:
    """The addresses of a member's operands."""
    slot = Slot.from_address(row + rank * SLOT)
    return ctypes.cast(slot.arrays, ctypes.POINTER(ctypes.c_void_p))


def _fill(row: int, rank: int, op: Op, operands: Sequence[int | None]) -> Any:
    """Say where the operands of a member lie that is elsewhere; it has no results here."""
    table = (ctypes.c_void_p * (2 * op.arrays))(*operands)
    slot = Slot.from_address(row + rank * SLOT)
    slot.op, slot.arrays = op.number, ctypes.addressof(table)
    return table
