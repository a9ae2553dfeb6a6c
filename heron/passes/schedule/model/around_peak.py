"""Better orders from good ones: steps are moved away from where most bytes are held."""

from __future__ import annotations

from heron.passes.schedule.model.peaks import Peaks, course, peak, tops
from heron.passes.schedule.model.steps import Steps

#: steps looked at in all: what bounds the time this takes
_WORK = 10_000


def improve(steps: Steps, peaks: Peaks, order: list[int]) -> tuple[Peaks, list[int]]:
    """`order`, whose `peaks` are given, or one that needs less, with its peaks.

    While that helps, one step is moved from before the peak to behind it (just ahead of whoever needs it), or from
    behind it to before it (just behind what it needs).
    """
    tries = _WORK // (len(order) + 1)
    while tries > 0 and peaks.roughly > 0:
        for n, place in _moves(steps, order)[:tries]:
            tries -= 1
            moved = order.copy()
            moved.remove(n)
            moved.insert(place, n)
            found = peak(steps, moved)
            if found.key < peaks.key:
                peaks, order = found, moved
                break
        else:
            break
    return peaks, order


def _moves(steps: Steps, order: list[int]) -> list[tuple[int, int]]:
    """(step, its new place once it is taken out) of the moves that lower the peak, the best first."""
    place = [0] * len(steps)
    for k, n in enumerate(order):
        place[n] = k
    found = course(steps, order)
    whole, others = tops(steps, order, found)
    at, last = whole if found.held[whole] > steps.spare else others, found.last
    frees, reads = steps.frees, steps.reads
    readers_behind = [0] * len(steps.readers)
    for n in order[at:]:
        for v in reads[n]:
            readers_behind[v] += 1
    moves: list[tuple[int, int, int]] = []
    for n in order[: at + 1]:
        first = min([place[a] for a in steps.after[n]], default=len(order))
        if first <= at + (place[n] == at):
            continue
        held_on = sum([frees[v] for v in reads[n] if last[v] == n and place[n] < at])
        gain = steps.makes[n] - steps.drops[n] - held_on
        if gain > 0 or place[n] == at:
            moves.append((gain, n, first - 1))
    for n in order[at:]:
        ready = max([place[b] for b in steps.before[n]], default=-1) + 1
        if ready >= at:
            continue
        freed = sum([frees[v] for v in reads[n] if readers_behind[v] == 1])
        gain = freed - (steps.makes[n] - steps.drops[n])
        if gain > 0 or place[n] == at:
            moves.append((gain, n, ready))
    moves.sort(key=lambda move: -move[0])
    return [(n, to) for _, n, to in moves]
