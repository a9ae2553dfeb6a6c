"""Several devices running one program: who they are, and how they wait for one another.

Each device runs in a thread of its own, but only one at a time: it goes on until it must wait, then the next one that
can go on gets its turn, in the order of their numbers. So results never depend on timing, and when nobody can go on,
that is known, and who waits where is said.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from heron.errors import HeronError
from heron.hlo.ir.evaluation import Device
from heron.records import dataclass

if TYPE_CHECKING:
    from heron.hlo.ir.instruction import Instruction

#: more would be threads and memory without end; the largest machines programs are written for have fewer
MOST = 4096
_NAMED = 4  # devices an error tells one by one


@dataclass
class _Turn:
    """One device's thread: what it waits for, and whose turn it is."""

    device: Device
    go: threading.Event = field(default_factory=threading.Event)
    ready: Callable[[], bool] | None = None
    at: Instruction | None = None
    result: Any = None
    error: BaseException | None = None
    finished: bool = False


@dataclass
class _Meeting:
    """The values that devices brought, the result, and the number of devices that have left with it."""

    brought: dict[int, Any] = field(default_factory=dict)
    outcome: Any = None
    left: int = 0


class _Stopped(BaseException):
    """Ends the thread of a device that is not needed any more."""


class World:
    """``replicas × partitions`` devices.

    Raises EVAL005 for no devices, or more than `MOST`.
    """

    def __init__(self, replicas: int = 1, partitions: int = 1) -> None:
        if replicas < 1 or partitions < 1 or replicas * partitions > MOST:
            raise HeronError(
                "EVAL005",
                f"cannot run on {replicas} replicas of {partitions} partitions",
                why=f"there must be 1 to {MOST} devices",
            )
        self.replicas, self.partitions = replicas, partitions
        self.devices = [Device(n // partitions, n % partitions, n) for n in range(replicas * partitions)]
        self._turns: dict[int, _Turn] = {}
        self._back = threading.Event()
        self._stopping = False
        self._visits: dict[tuple[Hashable, int], int] = {}
        self._meetings: dict[tuple[Hashable, int], _Meeting] = {}
        #: what was sent and not yet received, by channel, sender and receiver
        self.mail: dict[Hashable, deque[Any]] = defaultdict(deque)
        #: who sends and who receives on a channel, where the program does not tell
        self.ends: dict[Hashable, Device] = {}

    # -- running -----------------------------------------------------------------------------------------------------
    def run(self, task: Callable[[Device], Any]) -> list[Any]:
        """``task(device)`` for every device, results in the order of their numbers.

        Raises what a task raises, and EVAL006 when devices wait forever.
        """
        if len(self.devices) == 1:
            return [task(self.devices[0])]
        turns = [_Turn(d) for d in self.devices]
        self._turns = {t.device.number: t for t in turns}
        threads = [threading.Thread(target=self._work, args=(task, t), daemon=True) for t in turns]
        for thread in threads:
            thread.start()
        try:
            self._take_turns(turns)
        finally:
            self._stopping = True
            for turn, thread in zip(turns, threads, strict=True):
                turn.go.set()
                thread.join(1)  # at once, but for a device interrupted by the user in the midst of a long step
            self._turns = {}
        return [t.result for t in turns]

    def _work(self, task: Callable[[Device], Any], turn: _Turn) -> None:
        try:
            self._pause(turn)
            turn.result = task(turn.device)
        except _Stopped:
            pass
        except BaseException as error:
            turn.error = error
        turn.finished = True
        self._back.set()

    def _pause(self, turn: _Turn) -> None:
        turn.go.wait()
        turn.go.clear()
        if self._stopping:
            raise _Stopped

    def _take_turns(self, turns: list[_Turn]) -> None:
        running = turns
        while running:
            moved = False
            for turn in running:
                if turn.ready is not None and not turn.ready():
                    continue
                turn.ready, moved = None, True
                self._back.clear()
                turn.go.set()
                self._back.wait()
                if turn.error is not None:
                    raise turn.error
            if not moved:
                raise _stuck(turns)
            running = [t for t in running if not t.finished]

    # -- waiting and meeting -----------------------------------------------------------------------------------------
    def wait(self, device: Device, at: Instruction, ready: Callable[[], bool]) -> None:
        """Let others go on until ``ready()``. Raises EVAL006 when that can never be."""
        if ready():
            return
        turn = self._turns.get(device.number)
        if turn is None:
            raise _stuck([_Turn(device, at=at)])
        turn.ready, turn.at = ready, at
        self._back.set()
        self._pause(turn)

    def meet(
        self,
        device: Device,
        at: Instruction,
        key: Hashable,
        members: Sequence[int],
        value: Any,
        work: Callable[[list[Any]], Any],
    ) -> Any:
        """``work(values)`` of what all `members` (numbers of devices) bring to the meeting `key`, in their order.

        A device's n-th visit to a key meets the others' n-th visits. The work is done once. Raises EVAL006.
        """
        if len(members) == 1:
            return work([value])
        visit = self._visits.get((key, device.number), 0)
        self._visits[key, device.number] = visit + 1
        meeting = self._meetings.setdefault((key, visit), _Meeting())
        meeting.brought[device.number] = value
        self.wait(device, at, lambda: len(meeting.brought) == len(members))
        if not meeting.left:
            meeting.outcome = work([meeting.brought[m] for m in members])
        meeting.left += 1
        if meeting.left == len(members):
            del self._meetings[key, visit]
        return meeting.outcome


def _stuck(turns: list[_Turn]) -> HeronError:
    """EVAL006: who waits where, and who has ended."""
    waiting = [t for t in turns if not t.finished]
    ended = len(turns) - len(waiting)
    places = [f"{t.device} waits at {t.at.opcode} '{t.at.name}'" for t in waiting if t.at is not None]
    more = [f"{len(places) - _NAMED} more wait"] if len(places) > _NAMED else []
    more += [f"{ended} ended without coming there"] if ended else []
    first = waiting[0].at
    return HeronError(
        "EVAL006",
        f"{len(waiting)} of {len(turns)} devices wait forever" if len(turns) > 1 else "the device waits forever",
        where=str(first) if first is not None else None,
        why="; ".join(places[:_NAMED] + more),
        hint="every device of a group must come to the same collectives, in the same order",
    )
