"""concatenate: each share of the result takes intervals of the operands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.hlo.ir.instruction import Instruction
from heron.hlo.sharding.atoms import TensorSharding
from heron.passes.sharding.partition.halo import exchange
from heron.passes.sharding.partition.moves import Piece, Span, own_pieces, pieces, tiles
from heron.passes.sharding.partition.part import Part
from heron.passes.sharding.partition.registry import partitions
from heron.records import dataclass

if TYPE_CHECKING:
    from heron.passes.sharding.partition.context import Partitioner


@dataclass(frozen=True)
class _Interval:
    """Elements `start` to `start + size` of a part along the dimension, which begin at `at` in the result."""

    part: Part
    start: int
    size: int
    at: int


@partitions("concatenate")
def partition_concatenate(p: Partitioner, i: Instruction, operands: list[Part]) -> Part:
    """Slices among the operands are not made: their elements come from where the sliced array has them."""
    (dim,) = i.dimensions
    wanted = p.wanted(i)
    axes = wanted.dims[dim]
    split = any(part.sharding.dims[dim] for part in operands)
    if not axes or not split:
        whole = TensorSharding.closed(wanted.with_dim(dim, ()).dims, manual=wanted.manual)
        values = [p.reshard(part, whole).value for part in operands]
        return p.reshard(Part(p.concatenate(values, dim), i.shape, whole), wanted)
    parts = [_resharded(p, x, dim, wanted) for x in _intervals(p, i, operands, dim, wanted)]
    values = list(dict.fromkeys(x.part.value for x in parts))
    places: dict[Instruction, int] = {}
    total = 0
    for value in values:
        places[value] = total
        total += value.shape.dims[dim]
    count = p.mesh.size(axes)
    found = [q for x in parts for q in _pieces(x, places[x.part.value], dim, tiles(i.shape.dims[dim], count))]
    found.sort(key=lambda q: (q.target, q.write))
    tile = -(-i.shape.dims[dim] // count)
    value = exchange(p, p.concatenate(values, dim), dim, axes, found, tile, None)
    return Part(value, i.shape, TensorSharding.closed(wanted.dims, manual=wanted.manual))


def _intervals(
    p: Partitioner, i: Instruction, operands: list[Part], dim: int, wanted: TensorSharding
) -> list[_Interval]:
    """The operands in order; a slice along the dimension alone is an interval of what it slices."""
    found: list[_Interval] = []
    at = 0
    for operand, part in zip(i.operands, operands, strict=True):
        interval = _Interval(part, 0, operand.shape.dims[dim], at)
        start, source = 0, operand
        while source.opcode == "slice" and _is_interval(source, dim):
            start += source.slice[dim][0]
            source = source.operands[0]
            (base,) = p.parts(source)
            if base.sharding.dims == wanted.dims and not base.sharding.unreduced:
                interval = _Interval(base, start, interval.size, at)
        found.append(interval)
        at += interval.size
    return found


def _is_interval(i: Instruction, dim: int) -> bool:
    """Whether a slice takes neighbouring elements along the dimension, and all along the others."""
    whole = ((0, n, 1) for n in i.operands[0].shape.dims)
    return all(b[2] == 1 if d == dim else b == w for d, (b, w) in enumerate(zip(i.slice, whole, strict=True)))


def _resharded(p: Partitioner, x: _Interval, dim: int, wanted: TensorSharding) -> _Interval:
    """The interval of a part split as the result is; along the dimension it may be whole."""
    kept = wanted.dims[dim] if x.part.sharding.dims[dim] else ()
    sharding = TensorSharding.closed(wanted.with_dim(dim, kept).dims, manual=wanted.manual)
    return _Interval(p.reshard(x.part, sharding), x.start, x.size, x.at)


def _pieces(x: _Interval, place: int, dim: int, want: list[Span]) -> list[Piece]:
    """The pieces of one interval. `place` is where its part begins in the joined values."""
    count, moved = len(want), x.at - x.start
    is_split = bool(x.part.sharding.dims[dim])
    given = tiles(x.part.dims[dim], count) if is_split else [Span(n, 0, x.part.dims[dim]) for n in range(count)]
    taken = [s.clipped(x.start, x.start + x.size) for s in given]
    first = {s.device: s.start for s in given}
    have = [Span(s.device, s.start + moved, s.limit + moved, place + s.start - first[s.device]) for s in taken]
    return pieces(have, want) if is_split else own_pieces(have, want)
