"""Words between processes: a launch begins, somebody waits, a launch is given up, a process ends, where it runs.

They go by a communicator of heron's own, from any process to any other, in the order in which they were said. A process
hears them while it waits. Nothing here waits itself, but for the first meeting of all processes.
"""

from __future__ import annotations

import atexit
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from enum import IntEnum
from threading import Lock
from typing import Any

from heron.errors import HeronError
from heron.once import once
from heron.records import dataclass
from heron.runtime.collectives import lives
from heron.runtime.collectives.mpi import library

#: the tag of words; arrays have others
_WORDS = 0
#: seconds of looking without sleeping, and of a sleep after that
_EAGER, _NAP = 2e-3, 2e-4
#: looks in vain before nothing has come: MPI takes messages in while one looks
_MISSES = 3
#: seconds that the processes have to come to their first meeting
_MEETING = 600.0
#: seconds that the others have to end by themselves when one is lost
_LAST_WORDS = 5.0
#: held by who waits for the first meeting
_COMING = Lock()


class Kind(IntEnum):
    """A launch begins; the sender waits in one; has given one up; ends; runs at a place."""

    BEGINS = 0
    WAITS = 1
    GAVE_UP = 2
    ENDS = 3
    RUNS_AT = 4


#: a launch: the processes that take part, and how many launches these had before
Key = tuple[tuple[int, ...], int]


@dataclass(frozen=True, slots=True)
class Word:
    """``launch``: which one. ``number``: the one that the sender would give it. ``program``: digests of what it runs.
    ``text``: the program's name; the place where the sender waits; the reason; the place of `lives`.
    """

    kind: Kind
    launch: Key = ((), 0)
    number: int = 0
    program: tuple[Any, ...] = ()
    text: str = ""


@dataclass(slots=True)
class Other:
    """Another process: what it has begun and given up, by launch; its present launch; the place where it waits; when
    it ended, and whether it did so without a word; its handle, if it is on this machine."""

    begun: dict[Key, Word] = field(default_factory=dict)
    given_up: dict[Key, Word] = field(default_factory=dict)
    last: Word = Word(Kind.BEGINS)
    waits: Word = Word(Kind.WAITS)
    ended: float = 0.0
    is_lost: bool = False
    process: int | None = None

    def forget(self, launch: Key) -> None:
        """Forget a launch that is over, and those before it."""
        for told in self.begun, self.given_up:
            for processes, count in list(told):
                if processes == launch[0] and count <= launch[1]:
                    del told[processes, count]


class Channel:
    """The words of this process and to it. Safe to use from several threads."""

    def __init__(self, comm: Any) -> None:
        self.comm, self.rank = comm, comm.Get_rank()
        self.others = {n: Other() for n in range(comm.Get_size()) if n != self.rank}
        #: held by the launch that is under way
        self.turn = Lock()
        #: a number above those of all launches so far
        self.next_number = 0
        #: launches so far, by the processes that took part
        self.counts: Counter[tuple[int, ...]] = Counter()
        #: what must live on: messages that nobody takes any more
        self.lost: list[Any] = []
        self._sent: list[Any] = []
        self._lock = Lock()
        self._mpi = library()
        self.tags = comm.Get_attr(self._mpi.TAG_UB)
        atexit.register(self._end)
        for rank in self.others:
            self.say(rank, Word(Kind.RUNS_AT, text=lives.own_place()))

    def say(self, rank: int, word: Word) -> None:
        """Send a word; it leaves at once."""
        with self._lock:
            self._sent = [r for r in self._sent if not r.Test()]
            self._sent.append(self.comm.isend(word, rank, _WORDS))

    def listen(self) -> None:
        """Take in what has come."""
        status, misses = self._mpi.Status(), 0
        with self._lock:
            while misses < _MISSES:
                message = self.comm.improbe(tag=_WORDS, status=status)
                if message is None:
                    misses += 1
                else:
                    self._take(self.others[status.Get_source()], message.recv())

    def _take(self, sender: Other, word: Word) -> None:
        match word.kind:
            case Kind.BEGINS:
                sender.begun[word.launch] = sender.last = word
            case Kind.WAITS:
                sender.waits = word
            case Kind.GAVE_UP:
                sender.given_up[word.launch] = word
            case Kind.ENDS:
                sender.ended = time.monotonic()
            case Kind.RUNS_AT:
                sender.process = lives.handle(word.text)

    def look_after(self, ranks: Iterable[int]) -> None:
        """Find those of the others that have ended without a word, as far as this machine can tell."""
        others = [self.others[rank] for rank in ranks if not self.others[rank].ended]
        gone = [other for other in others if other.process is not None and lives.has_ended(other.process)]
        if gone:
            self.listen()  # to what they may have said before
        for other in gone:
            if not other.ended:
                other.ended, other.is_lost = time.monotonic(), True

    def _end(self) -> None:
        """Let nobody wait for this process. Where one is lost, MPI would wait for it forever: the job ends."""
        if self._mpi.Is_finalized():
            return
        self.listen()
        self.look_after(self.others)
        for rank, other in self.others.items():
            if not other.is_lost:
                self.say(rank, Word(Kind.ENDS))
        if any(other.is_lost for other in self.others.values()):
            self._wait_for_ends()
            sys.stdout.flush()
            sys.stderr.flush()
            self.comm.Abort(1)

    def _wait_for_ends(self) -> None:
        """Give the others some time to report what they have to."""
        patience = Patience()
        while patience.spent < _LAST_WORDS and not all(other.ended for other in self.others.values()):
            self.listen()
            self.look_after(self.others)
            patience.pause()


class Patience:
    """Pauses between two looks: none at first, then short ones."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    @property
    def spent(self) -> float:
        """Seconds so far."""
        return time.monotonic() - self._began

    @staticmethod
    def since(time_: float) -> float:
        """Seconds since a time of the clock."""
        return time.monotonic() - time_

    def pause(self) -> None:
        """Let others run."""
        time.sleep(0 if self.spent < _EAGER else _NAP)


def channel(timeout: float = _MEETING) -> Channel:
    """The channel of this process. All processes that mpiexec started come here when they first share a program.

    ``timeout``: seconds that the others have to come, 0: no limit. Raises RUN088 when one does not, after which this
    process may wait again; RUN083 where there is no MPI.
    """
    with _COMING:
        _, request = _meeting()
        wait(request.Test, _missing, timeout)
        return _channel()


@once
def _meeting() -> tuple[Any, Any]:
    """heron's communicator, and the request that is over when all processes have asked for it."""
    world = library().COMM_WORLD
    return world.Idup()


@once
def _channel() -> Channel:
    return Channel(_meeting()[0])


def wait(is_over: Callable[[], Any], late: Callable[[float], HeronError], limit: float = _MEETING) -> None:
    """Wait until it is over. Raises what `late` makes of the seconds when it takes longer than the limit."""
    patience = Patience()
    while not is_over():
        if limit and patience.spent > limit:
            raise late(patience.spent)
        patience.pause()


def _missing(spent: float) -> HeronError:
    world = library().COMM_WORLD
    rank, size = world.Get_rank(), world.Get_size()
    return HeronError(
        "RUN088",
        f"process {rank} has waited {spent:.0f} s for {named([n for n in range(size) if n != rank])}",
        why="it waits for their first meeting: one of them has not come there, it computes, or does not answer",
        hint="all processes that mpiexec started must run programs on devices of several processes; "
        "the option device_timeout sets the limit, 0: none",
    )


def named(ranks: Sequence[int]) -> str:
    """Processes by number: ``process 1``, ``processes 1, 2``."""
    return f"process{'es' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"
