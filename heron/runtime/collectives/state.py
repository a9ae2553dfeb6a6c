"""The memory that devices of one process share while they run a program, as native code sees it.

A *world* is the devices of one launch. A *clique* is a group of them that exchange values; the same devices in the same
order are one clique, whichever instructions they meet at. A device that comes to a meeting leaves word of its arrays in
its *slot* of the clique. A clique has two rows of slots and uses them by turns: whoever writes a slot knows that the
others have read what it held two meetings ago.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence

#: bytes of a cache line
_LINE = 64
#: bytes of a slot behind its head: arrays that fit are copied there, and nobody waits until all have read them
INLINE = 8192

#: elements that a chunk of a sum is a multiple of, so that members never write to the same cache line
GRAIN = 256
#: what `Clique.exchange` is asked for: the arrays of a collective, or the chunks of its results
ARRAYS, CHUNKS = 0, 1

#: `Device.at` of a device that computes, and of one that has ended
COMPUTES, ENDED = -1, -2
#: `World.failed`: the launch was given up; devices met that are at different collectives; one names rows outside
GIVEN_UP, MISMATCH, OUTSIDE = 1, 2, 3

#: the native helper and its functions: what programs call, what a device's thread runs, how a launch begins and is
#: waited for
HELPER = "collectives"
COLLECTIVE, WORKER, LAUNCH, WAIT = "heron_collective", "heron_device", "heron_launch", "heron_await"
#: the function that runs all devices on the caller's thread (`turns.py`)
TURNS = "heron_turns"


class World(ctypes.Structure):
    """``launch``: the number of launches; devices sleep on it. ``failed``: not 0 where devices must stop. ``stop``: its
    threads are to end. ``done``: devices that have ended this launch; the caller sleeps on it. ``count``: devices.
    ``looks``: how often a device looks for the others before it gives way; ``patience``: nanoseconds of that before it
    sleeps; ``dozes``: the meetings at which it sleeps at once when it has given way for as long at once.

    Where devices take turns on one thread, ``turns`` is how many in a row may bring nothing before it is said that they
    wait for each other forever, else 0; ``idle``: those so far; ``left``: devices that have not ended; ``stride``:
    bytes from the table of one device to the next; ``context``: of the caller; ``taken``: the address of a number that
    is 1 while a program uses the stacks.
    """

    _fields_ = [
        ("launch", ctypes.c_int32),
        ("_line0", ctypes.c_int32 * 15),
        ("done", ctypes.c_int32),
        ("_line1", ctypes.c_int32 * 15),
        ("failed", ctypes.c_int32),
        ("stop", ctypes.c_int32),
        ("count", ctypes.c_int32),
        ("looks", ctypes.c_int32),
        ("patience", ctypes.c_int64),
        ("dozes", ctypes.c_int32),
        ("turns", ctypes.c_int32),
        ("idle", ctypes.c_int32),
        ("left", ctypes.c_int32),
        ("stride", ctypes.c_int64),
        ("context", ctypes.c_void_p),
        ("taken", ctypes.c_void_p),
    ]


class Device(ctypes.Structure):
    """``number`` among all devices, ``partition``, ``replica``. ``at``: the number of the collective at which it waits,
    `COMPUTES` or `ENDED`; ``steps``: meetings it has been at. ``failed``: it left a collective without a result.
    ``pool``: the threads that share its kernels. ``cliques``: a table of their addresses. ``program``, ``buffers``:
    what it runs, and the table it gets. ``dozes``: meetings at which it sleeps at once from now on.

    Where devices take turns: ``context``, of its own; ``stack`` and ``stack_bytes``; ``next``: the device after it.
    """

    _fields_ = [
        ("number", ctypes.c_int32),
        ("partition", ctypes.c_int32),
        ("replica", ctypes.c_int32),
        ("at", ctypes.c_int32),
        ("steps", ctypes.c_int32),
        ("failed", ctypes.c_int32),
        ("world", ctypes.c_void_p),
        ("pool", ctypes.c_void_p),
        ("cliques", ctypes.c_void_p),
        ("program", ctypes.c_void_p),
        ("buffers", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
        ("stack", ctypes.c_void_p),
        ("stack_bytes", ctypes.c_int64),
        ("next", ctypes.c_void_p),
        ("dozes", ctypes.c_int32),
        ("_line", ctypes.c_int32 * 7),
    ]


class Clique(ctypes.Structure):
    """``arrived``: members at the present meeting. ``generation``: meetings so far; who waits sleeps on it.
    ``sleepers``: members asleep. ``size``: members, ``local``: those of this process. ``slots``: two rows of one slot a
    member. ``order``: of each rank the number among the local members, -1 elsewhere. ``chunks``: of each rank the
    number of the chunk that it sums up; those of a process follow each other. ``exchange``: the function that brings
    the arrays of members of other processes, and the chunks they have summed up; null where there are none.
    ``number``: of the clique.
    """

    _fields_ = [
        ("arrived", ctypes.c_int32),
        ("_line0", ctypes.c_int32 * 15),
        ("generation", ctypes.c_int32),
        ("sleepers", ctypes.c_int32),
        ("_line1", ctypes.c_int32 * 14),
        ("size", ctypes.c_int32),
        ("local", ctypes.c_int32),
        ("slots", ctypes.c_void_p),
        ("order", ctypes.c_void_p),
        ("exchange", ctypes.c_void_p),
        ("chunks", ctypes.c_void_p),
        ("number", ctypes.c_int32),
        ("_line2", ctypes.c_int32 * 5),
    ]


class Slot(ctypes.Structure):
    """The arrays that a member brings. ``op``: the collective's number. ``arrays``: addresses of its operands, then its
    results. Arrays that lie in the slot itself follow.
    """

    _fields_ = [
        ("op", ctypes.c_int32),
        ("_pad", ctypes.c_int32),
        ("arrays", ctypes.c_void_p),
        ("_line", ctypes.c_int64 * 6),
    ]


#: bytes from a slot to the next one
SLOT = ctypes.sizeof(Slot) + INLINE


class Place(ctypes.Structure):
    """A device in a grouping: its clique (-1: none), its rank in it, and the first of the reducers for its size."""

    _fields_ = [("clique", ctypes.c_int32), ("rank", ctypes.c_int32), ("reducer", ctypes.c_int32)]


class Op(ctypes.Structure):
    """A collective as native code sees it. ``way``: a `Way`. ``arrays``: pairs of an operand and a result. ``inline``:
    whether operands are copied into slots. ``places``: of each device. ``senders``: ranks, for each device. ``pieces``,
    ``reducers``: of each pair.
    """

    _fields_ = [
        ("number", ctypes.c_int32),
        ("way", ctypes.c_int32),
        ("arrays", ctypes.c_int32),
        ("inline", ctypes.c_int32),
        ("places", ctypes.c_void_p),
        ("senders", ctypes.c_void_p),
        ("pieces", ctypes.c_void_p),
        ("reducers", ctypes.c_void_p),
    ]


class Piece(ctypes.Structure):
    """The cut of one array; see `exchange.Piece`. ``offset``: of the operand from the slot's table, where it is copied
    there."""

    _fields_ = [
        ("rows", ctypes.c_int64),
        ("row_bytes", ctypes.c_int64),
        ("from_row", ctypes.c_int64),
        ("from_rank", ctypes.c_int64),
        ("to_row", ctypes.c_int64),
        ("to_rank", ctypes.c_int64),
        ("items", ctypes.c_int64),
        ("operand_bytes", ctypes.c_int64),
        ("offset", ctypes.c_int64),
    ]


class Memory:
    """Zeroed memory for structures of these sizes, each at the start of a cache line."""

    def __init__(self, sizes: Iterable[int]) -> None:
        self._bytes = ctypes.create_string_buffer(sum(map(_lines, sizes)) + _LINE)
        self._free = _lines(ctypes.addressof(self._bytes))
        self._end = ctypes.addressof(self._bytes) + len(self._bytes)

    def take(self, size: int) -> int:
        """The address of some more bytes."""
        address, self._free = self._free, self._free + _lines(size)
        assert self._free <= self._end, "more is taken than there is"
        return address


def _lines(size: int) -> int:
    """The bytes of the cache lines that hold so many."""
    return -(-size // _LINE) * _LINE


class Cliques:
    """The cliques of a program: memory for one launch at a time.

    Args:
        places: the numbers of this process's devices.
        exchange: the address of the function that brings the arrays of other processes' devices; 0: there are none.
        processes: of each device; none where all are here.
    """

    def __init__(
        self,
        groups: Sequence[Sequence[int]],
        places: Sequence[int],
        exchange: int = 0,
        processes: Sequence[int] = (),
    ) -> None:
        here, self._processes = set(places), processes
        held = [[m for m in members if m in here] for members in groups]
        rows = [
            size
            for members, local in zip(groups, held, strict=True)
            if local
            for size in (2 * len(members) * SLOT, 4 * len(members), 4 * len(members))
        ]
        self._memory = Memory([ctypes.sizeof(Clique)] * len(groups) + rows)
        self.each = [
            self._clique(n, members, local) for n, (members, local) in enumerate(zip(groups, held, strict=True))
        ]
        for clique in self.each:
            clique.exchange = exchange if clique.local < clique.size else None
        self._table = (ctypes.c_void_p * max(1, len(groups)))(*map(ctypes.addressof, self.each))
        self.address = ctypes.addressof(self._table)

    def _clique(self, number: int, members: Sequence[int], local: Sequence[int]) -> Clique:
        clique = Clique.from_address(self._memory.take(ctypes.sizeof(Clique)))
        clique.number, clique.size, clique.local = number, len(members), len(local)
        if local:
            clique.slots = self._memory.take(2 * len(members) * SLOT)
            order = [local.index(m) if m in local else -1 for m in members]
            clique.order = self._memory.take(4 * len(members))
            (ctypes.c_int32 * len(members)).from_address(clique.order)[:] = order
            clique.chunks = self._memory.take(4 * len(members))
            (ctypes.c_int32 * len(members)).from_address(clique.chunks)[:] = chunk_numbers(members, self._processes)
        return clique


def chunk_numbers(members: Sequence[int], processes: Sequence[int]) -> list[int]:
    """The chunk that each member sums up, those of a process one after the other.

    >>> chunk_numbers([3, 1, 2], [0, 1, 0, 1])
    [1, 2, 0]
    """
    ranks = sorted(range(len(members)), key=lambda r: (processes[members[r]] if processes else 0, r))
    return [ranks.index(r) for r in range(len(members))]


def chunk_items(items: int, members: int, number: int) -> int:
    """The first element of a chunk, or the end of the one before it.

    >>> [chunk_items(1000, 3, n) for n in range(4)]
    [0, 512, 1000, 1000]
    """
    share = -(-items // members)
    return min(-(-share // GRAIN) * GRAIN * number, items)
