"""Transfers of elements of one dimension between devices: the arithmetic of index intervals behind halos.

A `Span` says that a device has, or wants, the positions from `start` to `limit` of a dimension. `pieces` finds the
parts of spans that move, and `rounds` puts them into as few and as small collective-permutes as it finds.

    have = tiles(10, 4)                             # [0, 3) [3, 6) [6, 9) [9, 10)
    want = [Span(k, 3 * k, 3 * k + 4) for k in range(4)]    # one more to the right
    rounds(pieces(have, want))                      # what stays, then one round: device k + 1 sends 1 element to k
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from heron.records import dataclass


class Span(NamedTuple):
    """Positions `start` to `limit` (exclusive) of a dimension, on one device.

    `device` is its number in the group. In the device's array, position `start` stands at `place`.
    """

    device: int
    start: int
    limit: int
    place: int = 0

    def clipped(self, low: int, high: int) -> Span:
        """The positions of it that lie in [low, high); maybe none."""
        start = min(max(self.start, low), self.limit)
        return Span(self.device, start, max(start, min(self.limit, high)), self.place + start - self.start)


class Piece(NamedTuple):
    """`size` elements at `read` in the array of device `source`, wanted at `write` by device `target`."""

    source: int
    target: int
    read: int
    write: int
    size: int


@dataclass(frozen=True)
class Round:
    """Pieces of which no two have one source or one target, so that one collective-permute can bring them."""

    pieces: tuple[Piece, ...]

    @cached_property
    def size(self) -> int:
        """The number of elements that each device sends: those of the largest piece."""
        return max(p.size for p in self.pieces)

    @property
    def stays(self) -> bool:
        """Whether every piece is on its device already."""
        return all(p.source == p.target for p in self.pieces)


def tiles(size: int, count: int, tile: int | None = None) -> list[Span]:
    """The positions of a dimension that each of `count` devices has; the last tiles may be short or empty.

    `tile` is the size of a tile where it is not as small as it can be.
    """
    tile = -(-size // count) if tile is None else tile
    return [Span(k, k * tile, (k + 1) * tile).clipped(0, size) for k in range(count)]


def pieces(have: Iterable[Span], want: Iterable[Span]) -> list[Piece]:
    """The pieces that fill the wanted spans; `have` must not overlap. Positions that nobody has stay unfilled."""
    known = sorted((s for s in have if s.start < s.limit), key=lambda s: s.start)
    starts = [s.start for s in known]
    found: list[Piece] = []
    for w in want:
        if w.start >= w.limit:
            continue
        for at in range(max(0, bisect_right(starts, w.start) - 1), len(known)):
            s = known[at]
            if s.start >= w.limit:
                break
            begin, end = max(s.start, w.start), min(s.limit, w.limit)
            if begin < end:
                read, write = s.place + begin - s.start, w.place + begin - w.start
                found.append(Piece(s.device, w.device, read, write, end - begin))
    return _joined(found)


def own_pieces(have: Iterable[Span], want: Iterable[Span]) -> list[Piece]:
    """The pieces where each device takes only what it has itself, as it does from an array that is whole."""
    mine: dict[int, list[Span]] = {}
    for s in have:
        mine.setdefault(s.device, []).append(s)
    return [p for w in want for p in pieces(mine.get(w.device, ()), (w,))]


def _joined(found: list[Piece]) -> list[Piece]:
    """Pieces that follow one another at their source and their target as one."""
    joined: list[Piece] = []
    for p in found:
        if joined and _follows(joined[-1], p):
            joined[-1] = joined[-1]._replace(size=joined[-1].size + p.size)
        else:
            joined.append(p)
    return joined


def _follows(a: Piece, b: Piece) -> bool:
    """Whether `b` begins where `a` ends, at source and target."""
    ends = a.source, a.target, a.read + a.size, a.write + a.size
    return ends == (b.source, b.target, b.read, b.write)


def rounds(all_pieces: Iterable[Piece]) -> tuple[Round, ...]:
    """Rounds that bring all pieces: first those in which every piece stays, then those that send the least found.

    By distance is best for tiles that all want the same of their neighbours; first fit is best where tiles of one
    size become tiles of another.
    """
    return _rounds(tuple(all_pieces))


@lru_cache(maxsize=256)
def _rounds(all_pieces: tuple[Piece, ...]) -> tuple[Round, ...]:
    stay = [p for p in all_pieces if p.source == p.target]
    move = [p for p in all_pieces if p.source != p.target]
    best = _by_distance(move)
    if sent(best) > _most_wanted(move):
        ways = [best, _first_fit(move), _first_fit(sorted(move, key=lambda p: -p.size))]
        best = min(ways, key=lambda way: (sent(way), len(way)))
    return (*_by_distance(stay), *best)


def _most_wanted(move: Iterable[Piece]) -> int:
    """The most elements that one device gets: no rounds send less."""
    wanted: dict[int, int] = {}
    for p in move:
        wanted[p.target] = wanted.get(p.target, 0) + p.size
    return max(wanted.values(), default=0)


@lru_cache(maxsize=256)
def fetched(size: int, tile: int, want: tuple[Span, ...]) -> tuple[Piece, ...]:
    """The pieces that fill what devices want of a dimension of `size`, of which each has a tile."""
    return tuple(pieces(tiles(size, len(want), tile), [w.clipped(0, size) for w in want]))


def transfer(size: int, tile: int, want: tuple[Span, ...]) -> int:
    """The elements that a device sends so that each gets what it wants of a dimension of `size`, split into tiles.

    That is the least of what `rounds` and an all-gather send.
    """
    return min(sent(rounds(fetched(size, tile, want))), (len(want) - 1) * tile)


@lru_cache(maxsize=256)
def retiled(
    size: int, tile: int, old: Sequence[int], new: Sequence[int], parts: Sequence[int], goal: int
) -> tuple[Piece, ...]:
    """The pieces that make tiles of `goal`, numbered along the atoms `new`, of tiles of `tile` along `old`.

    ``parts``: how many parts each atom makes. Devices are numbered along `joint` atoms. Those that differ in atoms of
    `new` alone have equal tiles, and each takes from devices that agree with it there.
    """
    axes = joint(old, new)
    counts = [parts[a] for a in axes]
    places = dict(zip(axes, np.indices(counts).reshape(len(axes), -1), strict=True))
    at = [places[a] for a in new]
    number = np.ravel_multi_index(at, [parts[a] for a in new]).tolist() if at else [0] * prod(counts)
    copies = prod(counts[len(old) :])
    found: list[Piece] = []
    for copy in range(copies):
        have = [s._replace(device=s.device * copies + copy) for s in tiles(size, len(number) // copies, tile)]
        ends = ((n, number[n] * goal) for n in range(copy, len(number), copies))
        found += pieces(have, [Span(n, start, start + goal).clipped(0, size) for n, start in ends])
    return tuple(found)


def joint(old: Sequence[int], new: Sequence[int]) -> tuple[int, ...]:
    """The atoms of both, those of `old` first."""
    return (*old, *(a for a in new if a not in old))


def windows(count: int, start: int, step: int, size: int) -> tuple[Span, ...]:
    """A window of `size` for each of `count` devices, from position ``start + n * step`` on."""
    return tuple(Span(n, start + n * step, start + n * step + size) for n in range(count))


def sent(way: Iterable[Round]) -> int:
    """The number of elements that a device sends in all rounds."""
    return sum(r.size for r in way if not r.stays)


def _by_distance(some: Sequence[Piece]) -> list[Round]:
    groups: dict[tuple[int, int], list[Piece]] = {}
    count: dict[tuple[int, int], int] = {}
    for p in some:
        ends = p.source, p.target
        nth = count[ends] = count.get(ends, -1) + 1
        groups.setdefault((p.target - p.source, nth), []).append(p)
    return [Round(tuple(g)) for g in groups.values()]


def _first_fit(some: Sequence[Piece]) -> list[Round]:
    """Each piece in the first round where its source and its target are free."""
    groups: list[list[Piece]] = []
    sends: dict[int, int] = {}  # for each device the rounds in which it sends, as bits
    takes: dict[int, int] = {}
    for p in some:
        busy = sends.get(p.source, 0) | takes.get(p.target, 0)
        bit = ~busy & (busy + 1)
        if bit.bit_length() > len(groups):
            groups.append([])
        groups[bit.bit_length() - 1].append(p)
        sends[p.source] = sends.get(p.source, 0) | bit
        takes[p.target] = takes.get(p.target, 0) | bit
    return [Round(tuple(g)) for g in groups]


def line(values: Sequence[int | None], low: int | None = None, high: int | None = None) -> tuple[int, int] | None:
    """(a, b) with ``a + b * k`` equal to ``values[k]`` wherever there is a value; None when none are found.

    Values up to `low` may become any others up to `low`, those from `high` on any others from there on.
    """
    known = [(k, v) for k, v in enumerate(values) if v is not None]
    exact = [(k, v) for k, v in known if (low is None or v > low) and (high is None or v < high)]
    if len(exact) < 2:
        reach = max((abs(v) for _, v in known), default=0)
        slopes = [0, -reach, reach]
    else:
        (k0, v0), (k1, v1) = exact[0], exact[-1]
        slopes = [(v1 - v0) // (k1 - k0)]
    start, first = (exact or known or [(0, 0)])[0]
    for slope in slopes:
        fitted = [(v, first + slope * (k - start)) for k, v in known]
        if all(
            v == f or (low is not None and max(v, f) <= low) or (high is not None and min(v, f) >= high)
            for v, f in fitted
        ):
            return first - slope * start, slope
    return None
