"""An order in which other steps run while data moves, built from its end.

From the end each step is placed ahead of those placed before. A done is placed as late as may be, that is, as soon as
all that needs it has its place; its start follows when enough work stands between the two, or nothing else is left to
place. Which of the steps that could come next is taken is asked of `CRITERIA`, in their order.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass, field

from heron.passes.schedule.async_pairs import Times
from heron.passes.schedule.steps import Steps

#: of the ordinary steps that are ready, only so many are looked at: those that come last in the order so far
_LOOKED_AT = 16


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

    def is_free(self, n: int) -> bool:
        """Whether a lane is free for the transfer that `n` waits for, or for those of what it runs."""
        pair = self.times.by_done.get(n)
        needed = {pair.resource} if pair is not None else self.times.uses.get(n, ())
        return all(self.busy.get(r, 0) < self.times.lanes.get(r, 1) for r in needed)

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
    ready: list[tuple[int, int]] = []
    moving: dict[int, None] = {}

    def offer(n: int) -> None:
        if n in times.by_start or n in times.by_done:
            moving[n] = None
        else:
            insort(ready, (o.place[n], n))

    for n, count in enumerate(waiting):
        if not count:
            offer(n)
    while ready or moving:
        n = _choose(o, [n for _, n in ready[-_LOOKED_AT:]], list(moving))
        if n in moving:
            del moving[n]
        else:
            ready.remove((o.place[n], n))
        o.put(n)
        for b in steps.before[n]:
            waiting[b] -= 1
            if not waiting[b]:
                offer(b)
    return o.placed[::-1], o.choices


def _choose(o: Overlap, ready: list[int], moving: list[int]) -> int:
    """The best of the candidates by `CRITERIA`."""
    free = [n for n in (*ready, *moving) if o.is_free(n)] or [*ready, *moving]  # what depends so has to run so
    if len(free) == 1:
        return free[0]
    scored = sorted([(tuple([figure(o, n) for _, figure in CRITERIA]), n) for n in free])
    (best, taken) = scored[0]
    usual = max(free, key=lambda n: o.place[n])
    if usual != taken:
        score = next(s for s, n in scored if n == usual)
        at = next(k for k, (a, b) in enumerate(zip(best, score, strict=True)) if a != b)
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
