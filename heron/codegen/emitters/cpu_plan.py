"""The work items of a loop nest on the CPU: which loops they walk, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from heron.analysis.fusion.loop_space import Space, steps
from heron.records import dataclass

#: work items a CPU kernel should offer when it is large, so that threads can share it
_WANTED_ITEMS = 64
_LARGE = 1 << 16
_SHORTEST_ROW = 512
#: bytes of a cache line, and of the lines that a part may read: they stay in the first-level cache
_LINE, _NEAR = 64, 1 << 14
#: the fewest steps of a part
_SHORTEST_PART = 16


@dataclass(frozen=True, slots=True)
class CpuPlan:
    """``runs`` of dimensions, one loop each; the work items walk the first ``whole`` of them, and parts of ``chunk``
    of the next one unless that is 0. ``items``: how many there are. ``by_parts``: they walk the first run for one part
    of the second, then for the next.
    """

    sizes: tuple[int, ...]
    runs: tuple[tuple[int, ...], ...]
    items: int
    chunk: int = 0
    whole: int = 1
    by_parts: bool = False


def plan_cpu(sizes: Sequence[int], runs: Sequence[Sequence[int]], parts: int = 0) -> CpuPlan:
    """Enough work items to share out, with inner loops as long as may be; ``parts`` see `Fusion`."""
    lengths = [prod(sizes[d] for d in run) for run in runs]
    items = lengths[0] if lengths else 1
    shape, kept = tuple(sizes), tuple(tuple(run) for run in runs)
    if parts:
        return _plan_parts(shape, kept, lengths, parts)
    if len(lengths) < 2 or items >= _WANTED_ITEMS or prod(lengths) < _LARGE:
        return CpuPlan(shape, kept, items)
    if len(lengths) > 2:
        return CpuPlan(shape, kept, items * lengths[1], whole=2)
    chunk = _chunk(lengths[1], -(-_WANTED_ITEMS // items))
    return CpuPlan(shape, kept, items * (lengths[1] // chunk), chunk if chunk < lengths[1] else 0)


def _plan_parts(
    sizes: tuple[int, ...], runs: tuple[tuple[int, ...], ...], lengths: Sequence[int], parts: int
) -> CpuPlan:
    """A work item for each of as many equal parts; for each element where no loop ends with a part."""
    done = 1
    for n, length in enumerate(lengths):
        if done == parts:
            return CpuPlan(sizes, runs, parts, whole=n)
        left, rest = divmod(parts, done)
        if not rest and left < length and length % left == 0:
            return CpuPlan(sizes, runs, parts, length // left, n)
        done *= length
    return CpuPlan(sizes, runs, done, whole=len(lengths))


def _chunk(length: int, parts: int) -> int:
    """The longest divisor of `length` that gives `parts` parts, if that is no shorter than a row should be."""
    for n in range(parts, max(parts, length // _SHORTEST_ROW) + 1):
        if length % n == 0 and length // n >= _SHORTEST_ROW:
            return length // n
    return length


def plan_space(space: Space, parts: int = 0) -> CpuPlan:
    """The same for a space. ``parts`` see `Fusion`.

    Along its first run the loops may read neighbours of what they read along the second: a transpose of many points of
    three coordinates does. Parts of the second run, for all of the first, then find what they read in the cache.
    """
    lengths = space.lengths
    chunk = _near_part(space) if len(space.runs) > 1 and not parts else 0
    if not chunk:
        return plan_cpu(space.sizes, space.runs, parts)
    return CpuPlan(space.sizes, space.runs, lengths[0] * (lengths[1] // chunk), chunk, by_parts=True)


def _near_part(space: Space) -> int:
    """The steps along the second run that read little enough, if those along the first read neighbours of it; else 0.

    0 where all that is read along the second run is little.
    """
    first, second = (run[-1] for run in space.runs[:2])
    most = 0
    for read in space.reads:
        found = (steps(read.address, len(space.sizes)) if read.address is not None else None) or [0] * len(space.sizes)
        size = read.instruction.shape.element_type.byte_size
        near, far = found[first] * size, found[second] * size
        if 0 < near < min(_LINE, far):
            most = max(most, min(_LINE, far))
    length = space.lengths[1]
    if length * most <= _NEAR:
        return 0
    longest = _NEAR // most
    return next((n for n in range(longest, _SHORTEST_PART - 1, -1) if length % n == 0), 0)
