"""Elements of one dimension that other devices have: halos, windows, and any other move between places.

`exchange` emits what `moves` worked out: a collective-permute for each round, of the elements needed alone, and their
assembly. Positions that no piece fills hold the fill value, the shares' own rubbish behind the array's end included.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import S32
from heron.hlo.sharding.atoms import Axes
from heron.passes.sharding.partition.moves import Piece, Round, Span, fetched, line, own_pieces, rounds, sent, windows

if TYPE_CHECKING:
    from heron.passes.sharding.partition.context import Partitioner
    from heron.passes.sharding.partition.part import Part

#: scalar that stands where no piece does: a number, an instruction, or None where anything may stand
Fill = Any


def halo(p: Partitioner, part: Part, dim: int, left: int, right: int, fill: Fill) -> Instruction:
    """The share with `left` elements of the array before it and `right` behind it; see `Partitioner.halo`."""
    tile = part.local_dims[dim]
    return window(p, part, dim, -left, tile, tile + left + right, fill)


def window(p: Partitioner, part: Part, dim: int, start: int, step: int, size: int, fill: Fill) -> Instruction:
    """`size` elements from index ``start + n * step`` on, on the dimension's part n; see `Partitioner.window`."""
    count = p.mesh.size(part.sharding.dims[dim])
    return spans(p, part, dim, windows(count, start, step, size), size, fill)


def spans(
    p: Partitioner, part: Part, dim: int, want: Sequence[Span], size: int, fill: Fill, axes: Axes | None = None
) -> Instruction:
    """The `size` elements of the array that each device along a dimension's atoms wants; `want` tells their places.

    Where the wanted elements are most of the array, it is gathered instead. Where the dimension is whole, every device
    takes from its own array what `want` says for its number along `axes`.
    """
    split, tile = part.sharding.dims[dim], part.local_dims[dim]
    along = split or axes or ()
    count = p.mesh.size(along)
    if split and count > 1:
        found = fetched(part.dims[dim], tile, tuple(want))
        fetch, gather = sent(rounds(found)), (count - 1) * tile
        if fetch < gather:
            return exchange(p, part.value, dim, along, found, size, fill)
        row = _row_bytes(part.value, dim)
        reason = f"dimension {dim} of {part.value.name} is gathered: devices want no less of it"
        p.decide(False, reason, cost_before=fetch * row, cost_after=gather * row)
    gathered = p.all_gather(part.value, dim, split)
    whole = [Span(n, 0, part.dims[dim]) for n in range(count)]
    wanted = [w.clipped(0, part.dims[dim]) for w in want]
    return exchange(p, gathered, dim, along, own_pieces(whole, wanted), size, fill)


def exchange(
    p: Partitioner, value: Instruction, dim: int, axes: Axes, found: Sequence[Piece], size: int, fill: Fill
) -> Instruction:
    """An array of `size` along `dim`, filled with pieces of `value` on the devices along `axes`."""
    if size == 0 or not found:
        return p.full(0 if fill is None else fill, value.shape.element_type, _with(value, dim, size))
    e = _Exchange(p, value, dim, axes, size, fill)
    steps = rounds(found)
    if moved := sent(steps):
        count, cost = sum(not r.stays for r in steps), moved * _row_bytes(value, dim)
        reason = f"elements along dimension {dim} come in {count} permutes along {p.mesh.text(axes)}"
        p.decide(True, f"{reason}; each device sends {cost:.0f} bytes", object=value.name, cost_after=cost)
    places = e.fixed_places(steps)
    return e.assembled(steps) if places is None else e.joined(steps, places)


class _Exchange:
    """The emission of one exchange. `n` is this device's number along the axes."""

    def __init__(self, p: Partitioner, value: Instruction, dim: int, axes: Axes, size: int, fill: Fill) -> None:
        self.p, self.value, self.dim, self.axes, self.size, self.fill = p, value, dim, axes, size, fill
        self.count = p.mesh.size(axes)
        self.type = value.shape.element_type

    # -- the same places on all devices ------------------------------------------------------------------------------
    def fixed_places(self, steps: Sequence[Round]) -> list[tuple[int, int]] | None:
        """The places where each round reads and writes, when they are the same on all devices and apart."""
        places: list[tuple[int, int]] = []
        for r in steps:
            reads, writes = {q.read for q in r.pieces}, {q.write for q in r.pieces}
            if len(reads) > 1 or len(writes) > 1:
                return None
            places.append((reads.pop(), writes.pop()))
        ends = sorted((write, write + r.size) for (_, write), r in zip(places, steps, strict=True))
        apart = all(a[1] <= b[0] for a, b in zip(ends, ends[1:], strict=False))
        return places if apart and (self.fill is None or self._filled(steps) is not None) else None

    def _filled(self, steps: Sequence[Round]) -> list[tuple[int, int]] | None:
        """The one range of places that is filled on each device; None when there are several on one."""
        ranges: list[list[tuple[int, int]]] = [[] for _ in range(self.count)]
        for r in steps:
            for q in r.pieces:
                ranges[q.target].append((q.write, q.write + q.size))
        filled: list[tuple[int, int]] = []
        for mine in ranges:
            mine.sort()
            if any(a[1] != b[0] for a, b in zip(mine, mine[1:], strict=False)):
                return None
            filled.append((mine[0][0], mine[-1][1]) if mine else (0, 0))
        return filled

    def joined(self, steps: Sequence[Round], places: Sequence[tuple[int, int]]) -> Instruction:
        """The pieces one behind the other, then the fill value where devices got less than others."""
        p, parts, at = self.p, [], 0
        for r, (read, write) in sorted(zip(steps, places, strict=True), key=lambda item: item[1][1]):
            if write > at:
                parts.append(self._gap(write - at))
            parts.append(self._brought(r, self._sliced(self.value, read, read + r.size)))
            at = write + r.size
        if at < self.size:
            parts.append(self._gap(self.size - at))
        whole = p.concatenate(parts, self.dim)
        filled = None if self.fill is None else self._filled(steps)
        if filled is None:
            return whole
        covered = [(w, w + r.size) for r, (_, w) in zip(steps, places, strict=True)]
        low, high = min(c[0] for c in covered), max(c[1] for c in covered)
        if all(f == (low, high) for f in filled):
            return whole
        return self._select(self._within([f[0] for f in filled], [f[1] for f in filled]), whole, None)

    def _gap(self, size: int) -> Instruction:
        return self.p.full(0 if self.fill is None else self.fill, self.type, _with(self.value, self.dim, size))

    # -- places that depend on the device ----------------------------------------------------------------------------
    def assembled(self, steps: Sequence[Round]) -> Instruction:
        """Each round's pieces, moved to their places and selected there."""
        result: Instruction | None = None if self.fill is None else self._gap(self.size)
        for r in steps:
            placed = self._placed(r)
            if result is None:
                result = placed
                continue
            starts = self._targets(r, lambda q: q.write, 0)
            ends = self._targets(r, lambda q: q.write + q.size, 0)
            result = self._select(self._within(starts, ends), placed, result)
        assert result is not None
        return result

    def _targets(self, r: Round, number: Any, other: int | None) -> list[Any]:
        values: list[Any] = [other] * self.count
        for q in r.pieces:
            values[q.target] = number(q)
        return values

    def _placed(self, r: Round) -> Instruction:
        """The pieces of one round at the places where they are wanted; anything elsewhere."""
        p, dim, size = self.p, self.dim, r.size
        extent = self.value.shape.dims[dim]
        reads: list[int | None] = [None] * self.count
        for q in r.pieces:
            reads[q.source] = min(q.read, extent - size)
        piece = self._brought(r, self._cut(self.value, reads, size))
        # a piece that would reach beyond its source's end was read from further left
        begins = self._targets(r, lambda q: q.write - max(0, q.read + size - extent), None)
        if size == self.size and all(b in (None, 0) for b in begins):
            return piece
        low = max(self.size - min(b for b in begins if b is not None), 0)
        starts = [None if b is None else low - b for b in begins]
        high = max(0, max(s for s in starts if s is not None) + self.size - low - size)
        least = min(s for s in starts if s is not None)
        padded = p.pad(piece, dim, low - least, high)
        return self._cut(padded, [None if s is None else s - least for s in starts], self.size)

    def _cut(self, value: Instruction, starts: Sequence[int | None], size: int) -> Instruction:
        """`size` elements from a start that depends on the device."""
        first = {s for s in starts if s is not None}
        if len(first) == 1:
            (start,) = first
            return self._sliced(value, start, start + size)
        return self.p.dynamic_slice(value, {self.dim: number(self.p, self.axes, starts)}, _with(value, self.dim, size))

    # -- both --------------------------------------------------------------------------------------------------------
    def _brought(self, r: Round, piece: Instruction) -> Instruction:
        """The piece that a device gets in a round."""
        if r.stays:
            return piece
        to = {q.source: q.target for q in r.pieces}
        key = "brought", piece, self.axes, tuple(sorted(to.items()))
        return self.p.once(key, lambda: self.p.permute(piece, self.axes, to.get))

    def _sliced(self, value: Instruction, start: int, limit: int) -> Instruction:
        """Elements `start` to `limit`; the same instruction when asked again, so that they are sent once."""
        key = "sliced", value, self.dim, start, limit
        return self.p.once(key, lambda: self.p.slice(value, self.dim, start, limit))

    def _within(self, lows: Sequence[int], highs: Sequence[int]) -> Instruction | None:
        """Whether a place is in a range that depends on the device; None when all places are, on all devices."""
        p, tests = self.p, []
        places = p.iota((self.size,), 0)
        if max(lows) > 0:
            tests.append(p.compare("GE", places, number(p, self.axes, lows, low=0)))
        if min(highs) < self.size:
            tests.append(p.compare("LT", places, number(p, self.axes, highs, high=self.size)))
        if len(tests) == 2:
            return p.add("and", tests)
        return tests[0] if tests else None

    def _select(self, inside: Instruction | None, value: Instruction, other: Instruction | None) -> Instruction:
        if inside is None:
            return value
        dims = value.shape.dims
        test = self.p.add(
            "broadcast", [inside], inside.shape.with_dims(dims).with_default_layout(), dimensions=(self.dim,)
        )
        other = self._gap(self.size) if other is None else other
        return self.p.add("select", [test, value, other])


def number(
    p: Partitioner, axes: Axes, values: Sequence[int | None], low: int | None = None, high: int | None = None
) -> Instruction:
    """The number that belongs to this device's place along the axes; s32[]. Places without one get anything.

    Values up to `low` may become any others up to `low`, those from `high` on any others from there on.
    """
    found = line(values, low, high)
    if found is None:
        table = p.constant(np.array([0 if v is None else v for v in values]), S32)
        entry = p.dynamic_slice(table, {0: p.index(axes)}, (1,))
        return p.reshape(entry, ())
    first, step = found
    if not step:
        return p.constant(first, S32)
    return p.plus(p.scaled(p.index(axes), step), first)


def _row_bytes(value: Instruction, dim: int) -> float:
    """The bytes of the elements at one place of a dimension."""
    shape = value.shape
    return shape.num_elements // max(1, shape.dims[dim]) * shape.element_type.bits / 8


def _with(value: Instruction, dim: int, size: int) -> tuple[int, ...]:
    dims = value.shape.dims
    return (*dims[:dim], size, *dims[dim + 1 :])
