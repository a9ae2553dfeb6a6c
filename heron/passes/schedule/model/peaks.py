"""The bytes that an order of steps holds: step by step, and at its peaks.

The caller gives the memory of a program's outputs in any case, and other values may lie there until the outputs begin.
So memory beyond that is what counts. `Peaks.roughly` takes all of it as free for any value, `beyond` only for values
that are gone before a larger output begins.
"""

from __future__ import annotations

from collections.abc import Sequence

from heron.passes.schedule.model.steps import Steps
from heron.records import dataclass


@dataclass(slots=True)
class Course:
    """Memory of a schedule over time: ``held[k]`` bytes while step k of the order runs, ``result[k]`` of them for the
    computation's result; ``last[v]`` is the last step that reads a value (-1: none does)."""

    held: list[int]
    result: list[int]
    last: list[int]


def course(steps: Steps, order: Sequence[int]) -> Course:
    """The bytes held during each step of `order`; only mandatory in-place updates are in place."""
    left, last = steps.readers.copy(), [-1] * len(steps.readers)
    makes, keeps, drops, extra = steps.makes, steps.keeps, steps.drops, steps.extra
    reads, frees = steps.reads, steps.frees
    held: list[int] = []
    result: list[int] = []
    now = kept = 0
    for n in order:
        new = makes[n]
        kept += keeps[n]
        held.append(now + (extra[n] if extra[n] > new else new))
        result.append(kept)
        now += new - drops[n]
        for v in reads[n]:
            left[v] -= 1
            if not left[v]:
                now -= frees[v]
                last[v] = n
    return Course(held, result, last)


@dataclass(frozen=True, slots=True)
class Peaks:
    """Most bytes held at once: all, those that are not for the result, those that all outputs' memory does not hold."""

    all: int = 0
    others: int = 0
    roughly: int = 0

    @property
    def key(self) -> tuple[int, int]:
        """The measure by which orders are compared: smaller is better."""
        return self.roughly, self.others


def tops(steps: Steps, order: Sequence[int], found: Course) -> tuple[int, int]:
    """Places in `order` of the two peaks: of all bytes, and of those that are not for the result. What kernels there
    compute in place is taken off `found`."""
    looked = set[int]()
    return _top(steps, order, found, [0] * len(order), looked), _top(steps, order, found, found.result, looked)


def _top(steps: Steps, order: Sequence[int], found: Course, less: Sequence[int], looked: set[int]) -> int:
    while True:
        heights = [a - b for a, b in zip(found.held, less, strict=True)]
        at = heights.index(max(heights))
        shared = 0 if at in looked else steps.in_step(order[at], found.last)
        if not shared:
            return at
        looked.add(at)
        found.held[at] -= shared


def peak(steps: Steps, order: Sequence[int]) -> Peaks:
    """The bytes held at most when the steps run in that order."""
    if not order:
        return Peaks()
    found = course(steps, order)
    all_, others = tops(steps, order, found)
    most = found.held[all_]
    return Peaks(most, found.held[others] - found.result[others], max(0, most - steps.spare))


def beyond(steps: Steps, order: Sequence[int]) -> int:
    """The bytes held at most beyond the memory of outputs, where only values that are gone before a larger output
    begins, or that an output is computed over, lie there."""
    return top_beyond(steps, order)[1]


def top_beyond(steps: Steps, order: Sequence[int]) -> tuple[int, int]:
    """The place in `order` where that is so, and the bytes."""
    found = course(steps, order)
    less = _in_outputs(steps, order, found.last)
    at = _top(steps, order, found, less, set())
    return at, found.held[at] - less[at]


def _in_outputs(steps: Steps, order: Sequence[int], last: Sequence[int]) -> list[int]:
    """For each step of `order`, the bytes held that lie in outputs' memory."""
    place = [0] * len(steps)
    later, largest = [0] * (len(order) + 1), 0  # the largest output that begins behind each step
    for k in range(len(order) - 1, -1, -1):
        place[order[k]], later[k] = k, largest
        largest = max(largest, steps.outs[order[k]])
    change = [0] * (len(order) + 1)
    for v, size in enumerate(steps.frees):
        maker, end = steps.makers[v], last[v]
        if not size or maker < 0 or end < 0:
            continue
        if size <= later[place[end]] or steps.outs[end] and v in steps.shared(end):
            change[place[maker]] += size
            change[place[end] + 1] -= size
    fits = begun = 0
    less: list[int] = []
    for k, n in enumerate(order):
        fits += change[k]
        begun += steps.outs[n]
        inside = max(0, steps.extra[n] - steps.makes[n]) if later[k] else 0
        less.append(begun + max(0, min(steps.spare - begun, fits + inside)))
    return less
