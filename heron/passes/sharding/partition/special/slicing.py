"""slice: each share of the result takes the elements it needs from the shares that have them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import PRED
from heron.hlo.sharding.atoms import Axes, TensorSharding
from heron.passes.sharding.partition.halo import exchange, number
from heron.passes.sharding.partition.moves import Span, own_pieces, pieces, rounds, sent, tiles
from heron.passes.sharding.partition.part import Part
from heron.passes.sharding.partition.registry import partitions
from heron.passes.sharding.partition.windowed import meeting, nothing, nothing_added

if TYPE_CHECKING:
    from heron.passes.sharding.partition.context import Partitioner

#: start, limit and stride along one dimension
Bounds = tuple[int, int, int]


@partitions("slice", keeps_sums=True)
def partition_slice(p: Partitioner, i: Instruction, operands: list[Part]) -> Part:
    """Whole dimensions are cut first; then shares take elements along each split one. Partial sums stay so."""
    return sliced(p, i, operands[0], i.slice)


def sliced(p: Partitioner, i: Instruction, x: Part, bounds: Sequence[Bounds]) -> Part:
    """The elements of a part within bounds, which are those that op `i` takes."""
    wanted = p.wanted(i)
    if not prod(i.shape.dims):
        return nothing(p, i.shape, wanted.manual)
    moving = [b != (0, n, 1) for b, n in zip(bounds, x.dims, strict=True)]
    taken, _ = meeting(x, i.shape.dims, wanted, moving.__getitem__)
    part = p.reshard(x, taken)
    value = _cut_whole_dims(p, part, bounds)
    sharding = part.sharding
    for dim, (own, axes) in enumerate(zip(bounds, part.sharding.dims, strict=True)):
        if not axes or not moving[dim]:
            continue
        cut = _Cut(p, value, dim, axes, part.dims[dim], own)
        if not (wanted.dims[dim] and _is_split_later(p, i, axes)) and cut.is_cheaper_summed:
            p.decide(True, f"{cut.outputs} elements of dimension {dim} are a sum over {p.mesh.text(axes)}")
            value = cut.summand()
            sharding = TensorSharding.closed(
                sharding.with_dim(dim, ()).dims, sharding.unreduced | set(axes), sharding.manual
            )
        else:
            value = cut.shares()
    return Part(value, i.shape, sharding)


def _is_split_later(p: Partitioner, i: Instruction, axes: Axes) -> bool:
    """Whether a result of a user of `i` is split by one of these atoms: few elements need not be on all devices."""
    leaves = [(user, index) for user in i.users for index, s in user.shape.leaves() if s.is_array]
    return any(not p.wanted(user, index).used.isdisjoint(axes) for user, index in leaves)


def _cut_whole_dims(p: Partitioner, part: Part, bounds: Sequence[Bounds]) -> Instruction:
    local = tuple(
        (0, n, 1) if axes else b for b, axes, n in zip(bounds, part.sharding.dims, part.local_dims, strict=True)
    )
    if all(b == (0, n, 1) for b, n in zip(local, part.local_dims, strict=True)):
        return part.value
    return p.add("slice", [part.value], slice=local)


class _Cut:
    """A slice along one split dimension of `size` elements."""

    def __init__(self, p: Partitioner, value: Instruction, dim: int, axes: Axes, size: int, bounds: Bounds) -> None:
        self.p, self.value, self.dim, self.axes, self.bounds = p, value, dim, axes, bounds
        self.count = p.mesh.size(axes)
        start, limit, stride = bounds
        self.outputs = -(-(limit - start) // stride)
        # the results whose elements each device has, and the place of the first of them in its share
        self.have: list[Span] = []
        self.first: list[int | None] = []
        for tile in tiles(size, self.count):
            begin = max(0, -(-(tile.start - start) // stride))
            end = min(self.outputs, max(begin, -(-(tile.limit - start) // stride)))
            first = start + begin * stride - tile.start if begin < end else None
            self.first.append(first)
            self.have.append(Span(tile.device, begin, max(begin, end), (first or 0) if stride == 1 else 0))
        self.found = pieces(self.have, tiles(self.outputs, self.count))

    def shares(self) -> Instruction:
        """This device's share of the result."""
        tile = -(-self.outputs // self.count)
        return exchange(self.p, self._taken(), self.dim, self.axes, self.found, tile, None)

    @property
    def is_cheaper_summed(self) -> bool:
        """Whether summands of the whole result take fewer transfers than shares of it that are gathered."""
        t = self.value.shape.element_type
        if t is PRED or nothing_added(t) is None:
            return False
        gathered = sent(rounds(self.found)) + (self.count - 1) * -(-self.outputs // self.count)
        return 2 * self.outputs * (self.count - 1) < gathered * self.count

    def summand(self) -> Instruction:
        """The whole result, with the elements this device has, and elsewhere what adds nothing."""
        zero = nothing_added(self.value.shape.element_type)
        whole = [Span(n, 0, self.outputs) for n in range(self.count)]
        mine = own_pieces(self.have, whole)
        return exchange(self.p, self._taken(), self.dim, self.axes, mine, self.outputs, zero)

    def _taken(self) -> Instruction:
        """The elements of the own share that any device wants, the stride's gaps left out."""
        p, dim, (_, _, stride) = self.p, self.dim, self.bounds
        dims = self.value.shape.dims
        if stride == 1:
            return self.value
        most = max(s.limit - s.start for s in self.have)
        length = (most - 1) * stride + 1
        known = {f for f in self.first if f is not None}
        value, start = self.value, 0
        if len(known) == 1:
            (start,) = known
        if start + length > dims[dim]:
            value = p.pad(value, dim, 0, start + length - dims[dim])
        if len(known) > 1:
            value = p.pad(value, dim, 0, max(0, max(known) + length - value.shape.dims[dim]))
            value = p.dynamic_slice(
                value, {dim: number(p, self.axes, self.first)}, (*dims[:dim], length, *dims[dim + 1 :])
            )
        bounds = tuple((start, start + length, stride) if d == dim else (0, n, 1) for d, n in enumerate(dims))
        return p.add("slice", [value], slice=bounds)
