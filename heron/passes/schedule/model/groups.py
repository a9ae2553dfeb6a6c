"""Steps that stay together in any order worth trying, as one: fewer choices, and what a step leads to is seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from heron.passes.schedule.model.steps import Steps
from heron.records import dataclass


@dataclass(slots=True)
class Groups:
    """Groups 0, 1, … with steps ``members[g]`` in order; the other fields as in `Steps`, for whole groups.

    ``makes[g]``: bytes held more after the group than before it, not counting what it frees of others' values.
    ``hump[g]``: bytes held more while it runs, at most.
    """

    members: list[list[int]]
    before: list[set[int]] = field(default_factory=list)
    after: list[set[int]] = field(default_factory=list)
    makes: list[int] = field(default_factory=list)
    hump: list[int] = field(default_factory=list)
    reads: list[tuple[int, ...]] = field(default_factory=list)
    readers: list[int] = field(default_factory=list)
    frees: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.members)

    def flatten(self, order: Sequence[int]) -> list[int]:
        """The steps, groups in that order."""
        return [n for g in order for n in self.members[g]]


def grouped(steps: Steps) -> Groups:
    """`steps` in groups.

    A step that only one step waits for, and that holds more than it could free, goes just ahead of that one. A step
    that waits for one group only, and frees all that it makes, goes just behind it.
    """
    home = list(range(len(steps)))
    members: list[list[int]] = [[n] for n in home]
    frees, reads, readers = steps.frees, steps.reads, steps.readers
    for n in reversed(range(len(steps))):
        after = {home[a] for a in steps.after[n]}
        if len(after) == 1 and steps.makes[n] - steps.drops[n] >= sum(frees[v] for v in reads[n]):
            (g,) = after
            members[g].append(n)
            members[n], home[n] = [], g
    for n in range(len(steps)):
        if home[n] != n or len(members[n]) > 1:
            continue
        before = {home[b] for b in steps.before[n]}
        if len(before) == 1 and sum(frees[v] for v in reads[n] if readers[v] == 1) >= steps.makes[n] - steps.drops[n]:
            (g,) = before
            members[g].append(n)
            members[n], home[n] = [], g
    place: dict[int, int] = {}
    kept = [sorted(m) for m in members if m]
    for g, m in enumerate(kept):
        for n in m:
            place[n] = g
    return _summed(steps, kept, place)


def _summed(steps: Steps, members: list[list[int]], place: dict[int, int]) -> Groups:
    g = Groups(members, readers=[0] * len(steps.readers), frees=steps.frees)
    inside = [0] * len(steps.readers)  # readers in the group at hand
    for k, m in enumerate(members):
        if len(m) == 1:
            (n,) = m
            more = steps.makes[n] - steps.drops[n]
            hump = max(steps.makes[n], steps.extra[n])
            reads = steps.reads[n]
        else:
            more, hump, reads = _run(steps, m, inside)
        g.makes.append(more)
        g.hump.append(hump)
        g.reads.append(reads)
        for v in reads:
            g.readers[v] += 1
        g.before.append({place[b] for n in m for b in steps.before[n]} - {k})
        g.after.append({place[a] for n in m for a in steps.after[n]} - {k})
    return g


def _run(steps: Steps, m: list[int], inside: list[int]) -> tuple[int, int, tuple[int, ...]]:
    """Bytes more after a group, at most while it runs, and what it reads of others or leaves to others."""
    more = hump = 0
    read: dict[int, None] = {}
    for n in m:
        hump = max(hump, more + max(steps.makes[n], steps.extra[n]))
        more += steps.makes[n] - steps.drops[n]
        for v in steps.reads[n]:
            inside[v] += 1
            read[v] = None
            if inside[v] == steps.readers[v]:
                more -= steps.frees[v]
    shared = tuple([v for v in read if inside[v] < steps.readers[v]])
    for v in read:
        inside[v] = 0
    return more, hump, shared
