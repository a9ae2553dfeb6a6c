"""dynamic-slice and dynamic-update-slice: each device reads or writes the elements of the slice that its share has."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from heron.analysis.values.splat import splat_value
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import scalar
from heron.hlo.ir.types import PRED, S32
from heron.hlo.sharding.atoms import Axes, TensorSharding
from heron.passes.sharding.partition.halo import exchange
from heron.passes.sharding.partition.moves import Piece, Span, pieces, tiles
from heron.passes.sharding.partition.part import Part
from heron.passes.sharding.partition.registry import partitions
from heron.passes.sharding.partition.special.slicing import sliced
from heron.passes.sharding.partition.windowed import nothing_added, toward
from heron.records import dataclass

if TYPE_CHECKING:
    from heron.passes.sharding.partition.context import Partitioner


@partitions("dynamic-slice", keeps_sums=True)
def partition_dynamic_slice(p: Partitioner, i: Instruction, operands: list[Part]) -> Part:
    """Each device gives the elements it has, and the sum over devices is the slice; or the array is gathered.

    Of a partial sum the slice is one as well: fewer elements are added up.
    """
    x, sizes = operands[0], i.dynamic_slice_sizes
    wanted = p.wanted(i)
    moving = [d for d, (size, n) in enumerate(zip(sizes, x.dims, strict=True)) if size != n]
    known = known_starts(i, 1, sizes)
    if all(d in known for d in moving):
        starts = [known[d] if d in moving else 0 for d in range(len(sizes))]
        return sliced(p, i, x, [(start, start + size, 1) for start, size in zip(starts, sizes, strict=True)])
    x = p.reshard(x, _kept(x.sharding, toward(x.sharding, wanted), moving))
    split = [d for d in moving if x.sharding.dims[d]]
    zero = nothing_added(x.shape.element_type)
    if split and (zero is None or not _is_cheaper_summed(p, x, sizes, split)):
        kept = _without(x.sharding.dims, split)
        x = p.reshard(x, TensorSharding.closed(kept, x.sharding.unreduced, x.sharding.manual))
        split = []
    local = tuple(s if d in moving else n for d, (s, n) in enumerate(zip(sizes, x.local_dims, strict=True)))
    starts = clamped_starts(p, i, operands[1:], x, sizes, moving)
    shares = {d: _Overlap.of(p, x, d, sizes[d], starts[d]) for d in split}
    taken = {**starts, **{d: s.first for d, s in shares.items()}}
    cut = tuple(shares[d].size if d in shares else n for d, n in enumerate(local))
    value = p.dynamic_slice(x.value, taken, cut) if taken else x.value
    for share in shares.values():
        value = share.alone(p, value, zero)
    axes = tuple(a for d in split for a in x.sharding.dims[d])
    if axes:
        p.decide(True, f"the slice is a sum over {p.mesh.text(axes)} of what devices have of it")
    dims = _without(x.sharding.dims, split)
    if x.shape.element_type is PRED and axes:
        value, axes = p.all_reduce(value, axes, "or"), ()
    return Part(value, i.shape, TensorSharding.closed(dims, x.sharding.unreduced.union(axes), x.sharding.manual))


@partitions("dynamic-update-slice", keeps_sums=True)
def partition_dynamic_update_slice(p: Partitioner, i: Instruction, operands: list[Part]) -> Part:
    """Each device writes what its share has of the slice. The array stays where it is; the update comes to it.

    Into a partial sum each device writes a summand of the update: of one that is whole, all but one write zeros.
    """
    x, update = operands[:2]
    x = p.reshard(x, toward(x.sharding, p.wanted(i)))
    sizes = update.dims
    moving = [d for d, (size, n) in enumerate(zip(sizes, x.dims, strict=True)) if size != n]
    if not prod(sizes):
        return x
    known = known_starts(i, 2, sizes)
    stay = [d for d in moving if d in known and update.sharding.dims[d]]
    kept = _without(x.sharding.dims, [d for d in moving if d not in stay])
    sums = x.sharding.unreduced
    if sums:
        p.decide(True, f"the array stays a sum over {p.mesh.text(sorted(sums))}, and so does what is written into it")
    update = p.reshard(update, TensorSharding.closed(kept, sums, x.sharding.manual))
    starts = clamped_starts(p, i, operands[2:], x, sizes, moving)
    value = update.value
    shares = {d: _Overlap.of(p, x, d, sizes[d], starts[d]) for d in moving if x.sharding.dims[d]}
    for d in stay:
        if kept[d]:
            shares[d] = _Overlap.known(p, x, d, sizes[d], known[d])
    places = {**starts, **{d: s.first for d, s in shares.items()}}
    inside: Instruction | None = None
    for share in shares.values():
        value = share.aligned(p, value)
    for share in shares.values():
        test = share.inside(p, value.shape.dims)
        inside = test if inside is None else p.add("and", [inside, test])
    if inside is not None:
        present = p.dynamic_slice(x.value, places, value.shape.dims)
        value = p.add("select", [inside, value, present])
    index = [places.get(d) or p.constant(0, S32) for d in range(x.shape.rank)]
    return Part(p.add("dynamic-update-slice", [x.value, value, *index]), i.shape, x.sharding)


def known_starts(i: Instruction, first: int, sizes: Sequence[int]) -> dict[int, int]:
    """The start index along each dimension where it is a constant, moved so that the slice lies in the array.

    `first` is the number of the first operand that is a start.
    """
    starts, dims = i.operands[first:], i.operands[0].shape.dims
    if len(starts) != len(dims):
        return {}
    values = [None if s.shape.rank else splat_value(s) for s in starts]
    return {d: max(0, min(int(v), dims[d] - sizes[d])) for d, v in enumerate(values) if v is not None}


def clamped_starts(
    p: Partitioner, i: Instruction, starts: Sequence[Part], x: Part, sizes: Sequence[int], dims: Sequence[int]
) -> dict[int, Instruction]:
    """The global index at which a slice begins along each of `dims`, moved so that the slice lies in the array; s32."""
    found: dict[int, Instruction] = {}
    values = [p.whole(part).value for part in starts]
    for d in dims:
        if values[0].shape.rank:  # one vector of all
            start = p.reshape(p.slice(values[0], 0, d, d + 1), ())
        else:
            start = values[d]
        t = start.shape.element_type
        if t.bits < S32.bits:
            start, t = p.convert(start, S32), S32
        bounds = p.constant(0, t), p.constant(x.dims[d] - sizes[d], t)
        found[d] = p.convert(p.add("clamp", [bounds[0], start, bounds[1]], scalar(t)), S32)
    return found


@dataclass(frozen=True)
class _Overlap:
    """The elements of a share, along one dimension, among which all are that a slice has of the share.

    Attributes:
        dim: the dimension; `extent` the slice's size.
        size: the number of elements: the slice's size, or the share's where that is smaller.
        first: the index of the first of them in the share.
        place: the index in the slice of that element; negative, or beyond the slice, where the share has none of it.
        found: the elements of an update that is split too, to be brought; None for one that is whole.
    """

    dim: int
    extent: int
    size: int
    first: Instruction
    place: Instruction
    found: tuple[Axes, tuple[Piece, ...]] | None = None

    @staticmethod
    def known(p: Partitioner, x: Part, dim: int, extent: int, start: int) -> _Overlap:
        """The whole share, and what devices have to exchange of a split update that begins at a known index."""
        axes, tile = x.sharding.dims[dim], x.local_dims[dim]
        count = p.mesh.size(axes)
        have = [Span(s.device, s.start + start, s.limit + start) for s in tiles(extent, count)]
        place = p.plus(p.convert(p.offset(x, dim), S32), -start)
        found = tuple(pieces(have, tiles(x.dims[dim], count)))
        return _Overlap(dim, extent, tile, p.constant(0, S32), place, (axes, found))

    @staticmethod
    def of(p: Partitioner, x: Part, dim: int, extent: int, start: Instruction) -> _Overlap:
        """The overlap of a part with a slice of `extent` from global index `start` on."""
        tile = x.local_dims[dim]
        size = min(extent, tile)
        begin = p.add("subtract", [start, p.offset(x, dim)], scalar(S32))
        first = p.add("clamp", [p.constant(0, S32), begin, p.constant(tile - size, S32)], scalar(S32))
        return _Overlap(dim, extent, size, first, p.add("subtract", [first, begin], scalar(S32)))

    def alone(self, p: Partitioner, value: Instruction, zero: object) -> Instruction:
        """The share's elements at their places in the slice; `zero` elsewhere."""
        if self.extent == 1:
            test = p.compare("EQ", self.place, p.constant(0, S32))
            dims = value.shape.dims
            return p.add("select", [p.full(test, PRED, dims), value, p.full(zero, value.shape.element_type, dims)])
        padded = p.pad(value, self.dim, self.extent, self.extent, zero)
        start = p.add("subtract", [p.constant(self.extent, S32), self.place], scalar(S32))
        return p.dynamic_slice(padded, {self.dim: start}, _with(value, self.dim, self.extent))

    def aligned(self, p: Partitioner, update: Instruction) -> Instruction:
        """The update's elements for those of the share; anything where it has none."""
        if self.found is not None:
            return exchange(p, update, self.dim, *self.found, self.size, None)
        if self.extent == 1:
            return update
        padded = p.pad(update, self.dim, self.size, self.size)
        return p.dynamic_slice(padded, {self.dim: p.plus(self.place, self.size)}, _with(update, self.dim, self.size))

    def inside(self, p: Partitioner, dims: tuple[int, ...]) -> Instruction:
        """Whether elements of the share are in the slice; pred[dims]."""
        if self.extent == self.size == 1:
            return p.full(p.compare("EQ", self.place, p.constant(0, S32)), PRED, dims)
        number = p.add("add", [p.iota(dims, self.dim), p.full(self.place, S32, dims)])
        low = p.compare("GE", number, p.constant(0, S32))
        return p.add("and", [low, p.compare("LT", number, p.constant(self.extent, S32))])


def _is_cheaper_summed(p: Partitioner, x: Part, sizes: Sequence[int], split: Sequence[int]) -> bool:
    """Whether adding up the slice takes fewer transfers than gathering the array along the split dimensions."""
    count = p.mesh.size(a for d in split for a in x.sharding.dims[d])
    local = prod(n if s == whole else s for s, n, whole in zip(sizes, x.local_dims, x.dims, strict=True))
    return 2 * local <= count * prod(x.local_dims)


def _kept(old: TensorSharding, new: TensorSharding, dims: Sequence[int]) -> TensorSharding:
    """`new`, with these dimensions split as in `old`."""
    taken = [old.dims[d] if d in dims else axes for d, axes in enumerate(new.dims)]
    return TensorSharding.closed(taken, old.unreduced, old.manual)


def _without(axes: Sequence[Axes], dims: Sequence[int]) -> list[Axes]:
    return [() if d in dims else a for d, a in enumerate(axes)]


def _with(value: Instruction, dim: int, size: int) -> tuple[int, ...]:
    dims = value.shape.dims
    return (*dims[:dim], size, *dims[dim + 1 :])
