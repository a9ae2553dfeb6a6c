"""An order in which other steps run while data moves, built from its end.

From the end each step is placed ahead of those placed before. A done is placed as late as may be, that is, as soon as
all that needs it has its place; its start follows when enough work stands between the two, or nothing else is left to
place. `CRITERIA`, in their order, choose among the steps that could come next.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from dataclasses import field

from heron.analysis.cost.async_pairs import Times
from heron.passes.schedule.model.steps import Steps
from heron.records import dataclass

#: of the steps of a kind that are ready, only so many are looked at
_LOOKED_AT = 8


@dataclass(slots=True)
class Choice:
    """Step `taken` stands behind step `other`, which could have had its place; why, with {0} and {1} for the two."""

    taken: int
    other: int
    reason: str


@dataclass(slots=True)
class Overlap:
    """The state of building one order. ``limit``: bytes that may be held. ``now``: seconds from the end, ``held``:
    bytes held ahead of what is placed, ``busy``: transfers under way by resource."""

    steps: Steps
    times: Times
    limit: int
    now: float = 0.0
    held: int = 0
    busy: dict[str, int] = field(default_factory=dict)
    placed: list[int] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)
    #: seconds from the end at which a start covers its transfer
    covered: dict[int, float] = field(default_factory=dict)
    way_here: list[float] = field(default_factory=list)
    live: set[int] = field(default_factory=set)
    place: list[int] = field(default_factory=list)

    def over_limit(self, n: int) -> int:
        """Bytes beyond the limit that are held while `n` runs, if it comes next."""
        s = self.steps
        first = self.held + self._change(n) + max(s.makes[n], s.extra[n])
        return max(0, first - self.limit)

    def stall(self, n: int) -> float:
        """Seconds the device would wait because nothing more hides the transfer that `n` begins."""
        return max(0.0, self.covered.get(n, 0.0) - self.now)

    def kind(self, n: int) -> int:
        """Starts that are covered free their resource; dones begin to be hidden; then the rest."""
        return 0 if n in self.times.by_start else 1 if n in self.times.by_done else 2

    def _change(self, n: int) -> int:
        """Bytes held more ahead of `n` than behind it."""
        s = self.steps
        read = sum([s.frees[v] for v in s.reads[n] if v not in self.live])
        return read - s.makes[n] + s.drops[n]

    def has_room(self, resource: str) -> bool:
        """Whether one more transfer may be under way on it."""
        return self.busy.get(resource, 0) < self.times.lanes.get(resource, 1)

    def is_free(self, n: int) -> bool:
        """Whether there is room for the transfers of what `n` runs."""
        return all(map(self.has_room, self.times.uses.get(n, ())))

    def put(self, n: int) -> None:
        """Place `n` ahead of all that is placed."""
        self.now = max(self.now, self.covered.get(n, 0.0)) + self.times.seconds[n]
        self.held += self._change(n)
        self.live.update(self.steps.reads[n])
        self.placed.append(n)
        begun, waited = self.times.by_start.get(n), self.times.by_done.get(n)
        if begun is not None:
            self.busy[begun.resource] -= 1
        if waited is not None:
            self.busy[waited.resource] = self.busy.get(waited.resource, 0) + 1
            self.covered[waited.start] = self.now + waited.seconds


#: what is asked, the first first: (what it says when {0} is placed behind {1}, the figure: the lowest wins)
CRITERIA: tuple[tuple[str, Callable[[Overlap, int], float]], ...] = (
    ("with {1} there, more than the memory limit would be held", lambda o, n: o.over_limit(n)),
    ("the transfer that {1} begins would be waited for", lambda o, n: o.stall(n)),
    ("{1} is to hide what {0} begins or waits for", lambda o, n: o.kind(n)),
    ("the longer way leads to {0}, and what is on it comes next", lambda o, n: -o.way_here[n]),
    ("it came last in the order for memory", lambda o, n: -o.place[n]),
)


def overlapped(steps: Steps, times: Times, order: list[int], limit: int) -> tuple[list[int], list[Choice]]:
    """An order that hides transfers, and where it departs from `order`, why. `limit`: bytes that may be held."""
    o = Overlap(steps, times, limit)
    o.place = [0] * len(steps)
    for k, n in enumerate(order):
        o.place[n] = k
    o.way_here = _ways(steps, times)
    read = {v for values in steps.reads for v in values}
    o.held = sum(steps.makes) - sum(steps.drops) - sum(steps.frees[v] for v in read)
    waiting = [len(a) for a in steps.after]
    ready = Ready(o)
    for n, count in enumerate(waiting):
        if not count:
            ready.add(n)
    while ready:
        n = _choose(o, ready.candidates())
        ready.remove(n)
        o.put(n)
        for b in steps.before[n]:
            waiting[b] -= 1
            if not waiting[b]:
                ready.add(b)
    return o.placed[::-1], o.choices


class Ready:
    """Steps that could come next, in lists by what they do: starts, dones by resource, and the rest."""

    def __init__(self, o: Overlap) -> None:
        self.o = o
        self.starts: list[tuple[float, int, int]] = []
        self.dones: dict[str, list[tuple[float, int, int]]] = {}
        self.rest: list[tuple[float, int, int]] = []

    def __bool__(self) -> bool:
        return bool(self.starts or self.rest or any(self.dones.values()))

    def add(self, n: int) -> None:
        insort(self._list(n), self._entry(n))

    def remove(self, n: int) -> None:
        self._list(n).remove(self._entry(n))

    def candidates(self) -> list[int]:
        """The candidates for `CRITERIA`: the likeliest of each kind of which another may run. If no other may run, as
        when one transfer must run inside another: of all kinds."""
        o = self.o
        free = [some for resource, some in self.dones.items() if o.has_room(resource)]
        found = [n for some in (*free, self.rest) for _, _, n in some[-_LOOKED_AT:] if o.is_free(n)]
        found += [n for _, _, n in self.starts]
        return found or [n for some in (*self.dones.values(), self.rest) for _, _, n in some[-_LOOKED_AT:]]

    def _list(self, n: int) -> list[tuple[float, int, int]]:
        if n in self.o.times.by_start:
            return self.starts
        pair = self.o.times.by_done.get(n)
        return self.rest if pair is None else self.dones.setdefault(pair.resource, [])

    def _entry(self, n: int) -> tuple[float, int, int]:
        """The sort key of the lists, the best candidate last."""
        return self.o.way_here[n], self.o.place[n], n


def _choose(o: Overlap, free: list[int]) -> int:
    """The best of the candidates by `CRITERIA`."""
    if len(free) == 1:
        return free[0]
    scored = {n: tuple([figure(o, n) for _, figure in CRITERIA]) for n in free}
    taken = min(free, key=lambda n: scored[n])
    usual = max(free, key=lambda n: o.place[n])
    if usual != taken:
        differing = zip(scored[taken], scored[usual], strict=True)
        at = next(k for k, (a, b) in enumerate(differing) if a != b)
        o.choices.append(Choice(taken, usual, CRITERIA[at][0]))
    return taken


def _ways(steps: Steps, times: Times) -> list[float]:
    """For each step the seconds of the longest way from the beginning to it; 0 where no transfer comes before it."""
    longest, moves = [0.0] * len(steps), [False] * len(steps)
    for n in range(len(steps)):
        pair = times.by_done.get(n)
        for b in steps.before[n]:
            way = longest[b] + (pair.seconds if pair is not None and pair.start == b else 0.0)
            longest[n] = max(longest[n], way)
            moves[n] = moves[n] or moves[b]
        longest[n] += times.seconds[n]
        moves[n] = moves[n] or n in times.by_start or pair is not None
    return [way if moved else 0.0 for way, moved in zip(longest, moves, strict=True)]
