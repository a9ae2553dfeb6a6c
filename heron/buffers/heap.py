"""Packing: offsets for blocks with known lifetimes, so that blocks that live at once do not overlap.

Largest first, each into the tightest gap between the blocks already placed that live at a common tick (best fit), then
the best of a few orders is kept. A block may first be placed into a *shelf*: room that another allocation has to spare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field

import numpy as np

from heron.records import dataclass

#: bytes of a CPU's cache line, and of a vector by which LLVM reads or stores neighbouring values together: a read of
#: values that were stored one by one waits until they are in the cache
LINE, WORDS = 64, 16

#: (first tick, last tick), both included
Interval = tuple[int, int]


@dataclass(slots=True)
class Block:
    """`bytes` to place at a multiple of `unit`, `size` when rounded up to one, live during `intervals`. ``shelf`` and
    ``offset`` are the answer; shelf -1 is the arena."""

    size: int
    intervals: list[Interval]
    bytes: int = -1
    unit: int = 1
    shelf: int = -1
    offset: int = 0

    def __post_init__(self) -> None:
        if self.bytes < 0:
            self.bytes = self.size

    @staticmethod
    def of(size: int, intervals: list[Interval], alignment: int) -> Block:
        """A block of `size` bytes where large ones begin at multiples of `alignment`."""
        unit = unit_of(size, alignment)
        return Block(-(-size // unit) * unit, intervals, size, unit)

    @property
    def span(self) -> int:
        return self.intervals[-1][1] - self.intervals[0][0] + 1


def unit_of(size: int, alignment: int) -> int:
    """The bytes of which a multiple is where a value of `size` bytes begins: those of a cache line, `alignment`, or of
    the part of one that it needs, a power of two, so that it lies in one. A processor waits for a masked store before
    it loads what lies behind the last number. On GPUs, whose lines are longer, all values begin at one."""
    if size >= alignment or alignment > LINE:
        return alignment
    return max(WORDS, 1 << max(size - 1, 0).bit_length())


@dataclass(slots=True)
class Shelf:
    """Room of `size` bytes that is taken during `taken`."""

    size: int
    taken: list[Interval]
    blocks: list[Block] = field(default_factory=list)


def pack(blocks: Sequence[Block], shelves: Sequence[Shelf] = ()) -> int:
    """Give every block its place; returns the arena's size: the largest offset + size.

    The arena is never below the most bytes that live at once (`peak_of`) less the shelves' room; packing stops when it
    gets there.
    """
    best: tuple[int, list[tuple[int, int]]] | None = None
    least = max(0, peak_of(blocks) - sum(s.size for s in shelves))
    for by in _shelving(blocks) if shelves else _ORDERS[:1]:
        size = _into_arena(_onto_shelves(blocks, shelves, by))
        if best is None or size < best[0]:
            best = size, [(b.shelf, b.offset) for b in blocks]
        if size <= least or len(blocks) > 4000:
            break
    assert best is not None
    for block, (shelf, offset) in zip(blocks, best[1], strict=True):
        block.shelf, block.offset = shelf, offset
    return best[0]


def _into_arena(blocks: Sequence[Block]) -> int:
    """Place blocks by best fit in the best of a few orders; the arena's size."""
    if not blocks:
        return 0
    least = peak_of(blocks)
    best: tuple[int, list[int]] | None = None
    for order in _ORDERS:
        ordered = sorted(blocks, key=order)
        offsets = _place(ordered)
        size = max(o + b.size for o, b in zip(offsets, ordered, strict=True))
        if best is None or size < best[0]:
            best = size, offsets
            for block, offset in zip(ordered, offsets, strict=True):
                block.offset = offset
        if size <= least or len(blocks) > 4000:
            break
    assert best is not None
    return best[0]


_Order = Callable[[Block], tuple[int, int, int]]


def _largest_first(b: Block) -> tuple[int, int, int]:
    return -b.size, -b.span, b.intervals[0][0]


def _last_first(b: Block) -> tuple[int, int, int]:
    return -b.intervals[-1][1], -b.size, 0


def _first_first(b: Block) -> tuple[int, int, int]:
    return b.intervals[0][0], -b.size, 0


_ORDERS: list[_Order] = [
    _largest_first,
    lambda b: (-b.size * b.span, b.intervals[0][0], 0),
    lambda b: (-b.span, -b.size, b.intervals[0][0]),
    _last_first,
    _first_first,
]


def merged(holds: Iterable[tuple[int, int, object]]) -> list[Interval]:
    """Sorted (first, last, who) as intervals; those that touch or follow at once become one."""
    found: list[Interval] = []
    for start, end, _ in holds:
        if found and start <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def peak_of(blocks: Sequence[Block]) -> int:
    """Most bytes of these blocks that live at one tick."""
    return _peak(blocks)[0]


def _peak_tick(blocks: Sequence[Block]) -> int:
    """A tick at which most bytes live."""
    return _peak(blocks)[1]


def _peak(blocks: Sequence[Block]) -> tuple[int, int]:
    changes: list[tuple[int, int]] = []
    for b in blocks:
        for start, end in b.intervals:
            changes.append((start, b.size))
            changes.append((end + 1, -b.size))
    changes.sort()
    now = top = at = 0
    for tick, change in changes:
        now += change
        if now > top:
            top, at = now, tick
    return top, at


def _shelving(blocks: Sequence[Block]) -> Iterator[_Order]:
    """Orders in which to try blocks for shelves: largest first, along time (a chain of values, each made of the one
    before, then lies by turns on a shelf and in the arena), or first those that live at the peak."""
    yield _largest_first
    yield _last_first
    tick = _peak_tick(blocks)
    yield lambda b: (-any(a <= tick <= z for a, z in b.intervals), -b.size, -b.span)
    yield _first_first


def _onto_shelves(blocks: Sequence[Block], shelves: Sequence[Shelf], by: _Order) -> list[Block]:
    """Put blocks on shelves where they fit, in that order, each on the smallest shelf; the others are returned."""
    for shelf in shelves:
        shelf.blocks.clear()
    by_size = sorted(enumerate(shelves), key=lambda s: s[1].size)
    sizes = np.array([s.size for _, s in by_size])
    rest: list[Block] = []
    for block in sorted(blocks, key=by):
        first = int(np.searchsorted(sizes, block.bytes)) if by_size else 0
        for n, shelf in by_size[first:]:
            if not _overlaps(block.intervals, shelf.taken):
                offset = _gap(block, shelf)
                if offset is not None:
                    block.shelf, block.offset = n, offset
                    shelf.blocks.append(block)
                    break
        else:
            block.shelf = -1
            rest.append(block)
    return rest


def _gap(block: Block, shelf: Shelf) -> int | None:
    """The lowest offset at which `block` fits onto the shelf beside the blocks there."""
    beside = sorted((b.offset, b.size) for b in shelf.blocks if _overlaps(block.intervals, b.intervals))
    at = 0
    for offset, size in beside:
        if offset - at >= block.size:
            return at
        at = max(at, -(-(offset + size) // block.unit) * block.unit)
    return at if shelf.size - at >= block.bytes else None


def _overlaps(a: Sequence[Interval], b: Sequence[Interval]) -> bool:
    if len(a) == 1 and len(b) == 1:
        return a[0][0] <= b[0][1] and b[0][0] <= a[0][1]
    return any(s <= e2 and s2 <= e for s, e in a for s2, e2 in b)


def _place(blocks: Sequence[Block]) -> list[int]:
    """Offsets by best fit in the given order."""
    rows = sum(len(b.intervals) for b in blocks)
    starts, ends = np.empty(rows, np.int64), np.empty(rows, np.int64)
    lows, highs = np.empty(rows, np.int64), np.empty(rows, np.int64)
    used = 0
    offsets: list[int] = []
    for b in blocks:
        mask: np.ndarray | None = None
        for start, end in b.intervals:
            beside = (starts[:used] <= end) & (ends[:used] >= start)
            mask = beside if mask is None else mask | beside
        assert mask is not None
        offset = _best_fit(lows[:used][mask], highs[:used][mask], b.size, b.unit)
        offsets.append(offset)
        for start, end in b.intervals:
            starts[used], ends[used], lows[used], highs[used] = start, end, offset, offset + b.size
            used += 1
    return offsets


def _best_fit(low: np.ndarray, high: np.ndarray, size: int, unit: int) -> int:
    """The start of the smallest gap of at least `size` between the ranges [low, high), else their end: a multiple of
    `unit`."""
    if not len(low):
        return 0
    order = np.argsort(low, kind="stable")
    low = low[order]
    reach = -(-np.maximum.accumulate(high[order]) // unit) * unit
    gaps = np.empty(len(low), np.int64)
    gaps[0] = low[0]
    np.subtract(low[1:], reach[:-1], out=gaps[1:])
    fits = gaps >= size
    if not fits.any():
        return int(reach[-1])
    n = int(np.where(fits, gaps, np.iinfo(np.int64).max).argmin())
    return int(reach[n - 1]) if n else 0
