"""Elements of neighbouring shares: any window of a split dimension, brought to the device that needs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from heron.hlo.ir.instruction import Instruction
from heron.passes.sharding.partition.mask import outside_masked

if TYPE_CHECKING:
    from heron.passes.sharding.partition.context import Partitioner
    from heron.passes.sharding.partition.part import Part


def halo(p: Partitioner, part: Part, dim: int, left: int, right: int, fill: Any) -> Instruction:
    """The share with `left` elements of the array before it and `right` behind it."""
    tile = part.local_dims[dim]
    return window(p, part, dim, -left, tile, tile + left + right, fill)


def window(p: Partitioner, part: Part, dim: int, start: int, step: int, size: int, fill: Any) -> Instruction:
    """`size` elements from global index ``start + n * step`` on, on part n of the dimension.

    With shares of 4 elements, ``start=-1, step=4, size=6`` gives each share with one element of either neighbour.
    """
    need = Need.of(part.dims[dim], part.local_dims[dim], p.mesh.size(part.sharding.dims[dim]), start, step, size)
    axes = part.sharding.dims[dim]
    if need.is_nothing:
        dims = part.local_dims
        return p.full(0 if fill is None else fill, part.shape.element_type, (*dims[:dim], size, *dims[dim + 1 :]))
    if need.prefers_gather:
        joined, base, drift = p.all_gather(part.value, dim, axes), start, step
    else:
        joined, base, drift = _pieces(p, part, dim, need), need.base, step - need.tile
    found = _cut(p, joined, dim, need, base, drift, part)
    if fill is None or not need.leaves_array:
        return found
    at = p.plus(p.scaled(p.index(axes), step, need.limit), start)
    return outside_masked(p, found, dim, at, need.limit, fill)


@dataclass(frozen=True)
class Need:
    """The elements of other shares that windows cover.

    Attributes:
        limit: the size of the dimension; `tile` that of a share, `count` the number of shares.
        starts: for each share the start of its window; `used` tells whether the window has an element of the array.
        pieces: for each distance to another share the elements of it that any window needs, as (start, limit).
    """

    limit: int
    tile: int
    count: int
    size: int
    starts: np.ndarray
    used: np.ndarray
    pieces: dict[int, tuple[int, int]]

    @staticmethod
    def of(limit: int, tile: int, count: int, start: int, step: int, size: int) -> Need:
        """The elements that windows of `size` at ``start + n * step`` need."""
        n = np.arange(count, dtype=np.int64)
        starts = start + n * step
        first, last = np.maximum(starts, 0), np.minimum(starts + size, limit)
        used = first < last
        pieces: dict[int, tuple[int, int]] = {}
        if used.any():
            near, far = first // tile - n, (last - 1) // tile - n
            least, most = int(near[used].min()), int(far[used].max())
            for distance in range(least, most + 1):
                begin = np.maximum(first - (n + distance) * tile, 0)
                end = np.minimum(last - (n + distance) * tile, tile)
                needed = used & (begin < end)
                low = int(begin[needed].min()) if needed.any() else 0
                high = int(end[needed].max()) if needed.any() else tile
                # the pieces of neighbouring shares touch
                pieces[distance] = low if distance == least else 0, high if distance == most else tile
        return Need(limit, tile, count, size, starts, used, pieces)

    @property
    def is_nothing(self) -> bool:
        """Whether no window has an element of the array."""
        return not self.pieces

    @property
    def leaves_array(self) -> bool:
        """Whether a window has elements beyond the array's ends."""
        return bool((self.starts < 0).any() or (self.starts + self.size > self.limit).any())

    @property
    def base(self) -> int:
        """The place of the first share's window in the joined pieces."""
        least = min(self.pieces)
        return int(self.starts[0]) - least * self.tile - self.pieces[least][0]

    @property
    def sent(self) -> int:
        """The number of elements along the dimension that a device sends."""
        return sum(high - low for distance, (low, high) in self.pieces.items() if distance)

    @property
    def prefers_gather(self) -> bool:
        """Whether all shares on each device take no more transfers than the pieces."""
        return self.count > 1 and self.sent >= (self.count - 1) * self.tile

    def needs(self, n: int, distance: int) -> bool:
        """Whether the window of share `n` has elements of the share at a distance."""
        if not (0 <= n < self.count and 0 <= n + distance < self.count and self.used[n]):
            return False
        begin, end = (n + distance) * self.tile, (n + distance + 1) * self.tile
        return int(self.starts[n]) < end and int(self.starts[n]) + self.size > begin


def _pieces(p: Partitioner, part: Part, dim: int, need: Need) -> Instruction:
    """The pieces of the shares around, in order."""
    found: list[Instruction] = []
    for distance, (low, high) in need.pieces.items():
        piece = p.slice(part.value, dim, low, high)
        if distance:
            piece = p.permute(
                piece,
                part.sharding.dims[dim],
                lambda n, by=distance: n - by if need.needs(n - by, by) else None,
            )
        found.append(piece)
    return p.concatenate(found, dim)


def _cut(p: Partitioner, joined: Instruction, dim: int, need: Need, base: int, drift: int, part: Part) -> Instruction:
    """Each share's window out of the joined pieces, in which window n begins at ``base + n * drift``."""
    length = joined.shape.dims[dim]
    places = (base + np.arange(need.count, dtype=np.int64) * drift)[need.used]
    before, behind = max(0, -int(places.min())), max(0, int(places.max()) + need.size - length)
    if drift == 0 or need.count == 1:
        shown = p.slice(joined, dim, max(0, base), max(0, min(length, base + need.size)))
        return p.pad(shown, dim, before, need.size - before - shown.shape.dims[dim])
    padded = p.pad(joined, dim, before, behind)
    at = p.plus(p.scaled(p.index(part.sharding.dims[dim]), drift, need.limit), base + before)
    dims = padded.shape.dims
    return p.dynamic_slice(padded, {dim: at}, (*dims[:dim], need.size, *dims[dim + 1 :]))
