"""A program's collectives on one device: enqueued on a stream, captured into graphs like calls of other libraries.

Ahead of each collective a kernel writes its number into memory of the host, so that a launch that hangs can be told
who waits where.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np

from heron.records import dataclass
from heron.runtime.collectives.exchange import Piece
from heron.runtime.collectives.report import outside
from heron.runtime.collectives.state import COMPUTES
from heron.runtime.cuda import helpers
from heron.runtime.cuda.commands import Bases, Captured, Kernel
from heron.runtime.cuda.nccl.binding import Nccl, NcclFailed
from heron.runtime.cuda.nccl.cliques import Clique, Members
from heron.runtime.cuda.nccl.operations import Call, Copy, Member, Operation, Zeros, operations, receive, send
from heron.runtime.thunks import CollectiveThunk

if TYPE_CHECKING:
    from heron.runtime.cuda.device import Device
    from heron.runtime.cuda.loaded import Loaded

#: bytes of what a device tells: the number of a collective, and how many it has come to so far
_TOLD = 8
#: seconds between looks whether a communicator is being aborted
_LOOK = 0.01


class Progress:
    """The place of a device in a launch: two numbers in the host's memory, which the device writes."""

    def __init__(self, device: Device) -> None:
        d = device.driver
        self.address = d.handle(d.cuMemHostAlloc, _TOLD, 0)
        self._words = (ctypes.c_int32 * 2).from_address(self.address)

    def begin(self) -> None:
        """Nothing of a launch has run yet."""
        self._words[0] = COMPUTES

    @property
    def now(self) -> tuple[int, int]:
        """The number of the collective that it has come to last, and how many those are."""
        return self._words[0], self._words[1]


@dataclass(eq=False)
class Place:
    """A device of a program: its ``number`` among all, and the numbers of the program's collectives, by `id`.

    ``cliques``: those of the present launch. ``progress`` is None where nobody looks at it.
    """

    number: int
    partitions: int
    nccl: Nccl
    collectives: dict[int, int]
    progress: Progress | None = None
    cliques: dict[Members, Clique] = field(default_factory=dict)

    def begin(self, cliques: dict[Members, Clique]) -> None:
        """A launch with these cliques begins."""
        self.cliques = {members: c for members, c in cliques.items() if self.number in c.gpus}
        if self.progress is not None:
            self.progress.begin()

    @contextlib.contextmanager
    def communicator(self, members: Members) -> Iterator[int]:
        """The communicator of a clique, which is not aborted meanwhile. Raises RUN095 if it was before."""
        clique = self.cliques[members]
        calling, came = clique.calling[self.number], False
        # who aborts it holds the lock until no graph has calls of it, and this thread may be building one
        while self.number in clique.communicators and not came:
            came = calling.acquire(timeout=_LOOK)
        try:
            found = clique.communicators.get(self.number)
            if found is None or not came:
                raise NcclFailed("", 0, "it was aborted", f"the communicator of {clique.told}")
            yield found
        finally:
            if came:
                calling.release()


class Exchanges:
    """The collectives of a program that is loaded on a device."""

    def __init__(self, loaded: Loaded, place: Place) -> None:
        self.loaded, self.device, self.place = loaded, loaded.device, place
        module = loaded.hold_code(helpers.DEVICES.encode(), "several devices")
        self._number, self._mark = (self.device.function(module, n) for n in ("heron_number", "heron_mark"))
        before = place.progress.now[1] if place.progress is not None else 0
        self._counter = loaded.keep(np.array([before], np.int64))
        self._marks: dict[int, Kernel] = {}

    def device_number(self, is_partition: bool) -> tuple[int, int]:
        """The kernel that writes a number of the device, and the number."""
        replica, partition = divmod(self.place.number, self.place.partitions)
        return self._number, partition if is_partition else replica

    def command(self, thunk: CollectiveThunk, stream: int) -> Captured:
        """The command of a collective, which is captured on that stream."""

        def call(on: int, addresses: Sequence[int]) -> None:
            member = Member.of(thunk, self.place.number)
            self._do(thunk, member, operations(thunk, member, addresses), on)

        return Captured(self.loaded.driver, (*thunk.operands, *thunk.results), call, stream)

    def _do(self, thunk: CollectiveThunk, member: Member | None, found: Sequence[Operation], stream: int) -> None:
        """``found``: in the order of a device's calls; what it does alone comes first."""
        self._tell(thunk, stream)
        calls = [o for o in found if isinstance(o, Call)]
        for o in found:
            self._own(o, stream)
        if member is None or not calls:
            return
        nccl = self.place.nccl
        try:
            with self.place.communicator(member.group) as communicator:
                with nccl.group(communicator) if len(calls) > 1 else contextlib.nullcontext():
                    for c in calls:
                        arguments = (*c.pointers, c.count, c.data_type, *c.rest, communicator, stream)
                        nccl.call(c.function, *arguments, communicator=communicator)
        except NcclFailed as error:
            raise error.at(f"{thunk} on device {self.place.number}") from error

    def _own(self, o: Operation, stream: int) -> None:
        driver = self.loaded.driver
        if isinstance(o, Zeros):
            driver.cuMemsetD8Async(o.target, 0, o.size, stream)
        elif isinstance(o, Copy):
            driver.cuMemcpyDtoDAsync_v2(o.target, o.origin, o.size, stream)

    def _tell(self, thunk: CollectiveThunk, stream: int) -> None:
        """Enqueue the kernel that says where the device is: at every collective, whether it takes part or not, so that
        devices count alike."""
        progress = self.place.progress
        if progress is None:
            return
        number = self.place.collectives[id(thunk)]
        mark = self._marks.get(number)
        if mark is None:
            numbers = (self._counter, progress.address, number)
            mark = self._marks[number] = Kernel(self.loaded.driver, self._mark, (1, 1, 1), (1, 1, 1), (), numbers)
        mark.enqueue(stream)

    # -- pieces whose sizes are known when the program runs ----------------------------------------------------------
    def ragged(self, thunk: CollectiveThunk, bases: Bases) -> None:
        """Exchange rows that each sender names. The host reads offsets and sizes, and waits for them.

        Raises RUN084 for rows outside of an array.
        """
        slices = (*thunk.operands, *thunk.results)
        x, given, starts, sizes, places, _, result = (bases[s.allocation] + s.offset for s in slices)
        member, stream = Member.of(thunk, self.place.number), self.device.stream
        whole = thunk.pieces[1].operand_bytes
        if member is None:
            self._own(Zeros(result, whole), stream)
            return
        told = thunk.pieces[2]
        size = len(member.group)
        each, dtype = told.operand_bytes // size, np.dtype(f"i{told.operand_bytes // told.items}")
        theirs = self.loaded.scratch(2 * told.operand_bytes)
        calls: list[Operation] = []
        for n, table in enumerate((places, sizes)):
            for peer in range(size):
                calls.append(send(table + peer * each, each, peer))
                calls.append(receive(theirs + n * told.operand_bytes + peer * each, each, peer))
        self._do(thunk, member, calls, stream)
        read = self._numbers((starts, sizes, theirs, theirs + told.operand_bytes), told.items, dtype)
        rows, into = thunk.pieces[:2]
        self._need_inside(thunk, rows, read[0], read[1])
        self._need_inside(thunk, into, read[2], read[3])
        if result != given and whole:
            self._own(Copy(result, given, whole), stream)
        sent = _moves(x, rows.row_bytes, read[0], read[1], size)
        came = _moves(result, into.row_bytes, read[2], read[3], size)
        found = [send(*m) for m in sent] + [receive(*m) for m in came]
        self._do(thunk, member, found, stream)

    def _numbers(self, addresses: Sequence[int], count: int, dtype: np.dtype) -> list[np.ndarray]:
        tables = [np.empty(count, dtype) for _ in addresses]
        for table, address in zip(tables, addresses, strict=True):
            self.device.staging.to_host(address, table)
        return tables

    def _need_inside(self, thunk: CollectiveThunk, p: Piece, starts: np.ndarray, sizes: np.ndarray) -> None:
        bad = np.flatnonzero((starts < 0) | (sizes < 0) | (starts > p.rows - sizes))
        if bad.size:
            n = int(bad[0])
            why = f"rows {starts[n]} to {starts[n] + sizes[n]} of {p.rows}"
            raise outside(why, f"{thunk} on device {self.place.number}")


def _moves(
    base: int, row_bytes: int, starts: np.ndarray, sizes: np.ndarray, members: int
) -> list[tuple[int, int, int]]:
    """Address, bytes and peer of each run of rows, for each peer in the order in which both sides name them."""
    share = len(starts) // members
    pairs = zip(starts.tolist(), sizes.tolist(), strict=True)
    return [(base + start * row_bytes, rows * row_bytes, n // share) for n, (start, rows) in enumerate(pairs) if rows]
