"""reshape where parts of the operand and of the result are other intervals of elements: intervals are exchanged.

f32[24]  by 'x'=8 → f32[6,4]     device k has elements 3k to 3k + 2 and wants 4k to 4k + 3
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from heron.analysis.sharding.choice import compute_shardings
from heron.hlo.ir.instruction import Instruction
from heron.hlo.sharding.atoms import AtomicMesh, Axes, TensorSharding
from heron.passes.sharding.partition import default
from heron.passes.sharding.partition.halo import exchange
from heron.passes.sharding.partition.moves import Piece, Span, pieces, rounds, sent
from heron.passes.sharding.partition.part import Part
from heron.passes.sharding.partition.registry import partitions
from heron.records import dataclass

if TYPE_CHECKING:
    from heron.passes.sharding.partition.context import Partitioner


@partitions("reshape", keeps_sums=True)
def partition_reshape(p: Partitioner, i: Instruction, operands: list[Part]) -> Part | list[Part] | None:
    """The exchange of intervals where it sends less than the default; otherwise the default."""
    (x,), wanted = operands, p.wanted(i)
    if x.sharding.unreduced or not any(x.sharding.dims) or not prod(x.dims):
        return None
    if any(n == 1 and axes for n, axes in zip(x.dims, x.sharding.dims, strict=True)):
        # one device has all elements, and the result no dimension that would tell which
        kept = [() if n == 1 else axes for n, axes in zip(x.dims, x.sharding.dims, strict=True)]
        return default.partition(p, i, [p.reshard(x, TensorSharding.closed(kept, manual=x.sharding.manual))])
    usual = compute_shardings(i, [x.sharding], [wanted], p.mesh)
    cost = p.cost(x.shape, x.sharding, usual.operands[0]) + p.cost(i.shape, usual.results[0], wanted)
    if not cost:
        return None
    groups = _groups(p.mesh, x, i.shape.dims, wanted)
    if groups is None:
        return None
    made = TensorSharding.closed([axes for g in groups for axes in g.made], manual=x.sharding.manual)
    rows = sum(sent(rounds(g.found)) * prod(h.given for h in groups if h is not g) for g in groups)
    if rows * x.shape.element_type.bits / 8 + p.cost(i.shape, made, wanted) >= cost:
        return None
    value = p.reshape(x.value, [g.given for g in groups])
    for d, g in enumerate(groups):
        if g.axes:
            value = exchange(p, value, d, g.axes, g.found, g.taken, None)
    return Part(p.reshape(value, p.mesh.local_dims(i.shape.dims, made)), i.shape, made)


@dataclass(frozen=True)
class _Group:
    """Neighbouring dimensions that become others with as many elements.

    Attributes:
        axes: the atoms that split them, whose parts are intervals of elements.
        made: the atoms of each dimension of the result.
        given, taken: the elements in a share of the operand, and of the result.
        found: the pieces to be moved.
    """

    axes: Axes
    made: tuple[Axes, ...]
    given: int
    taken: int
    found: tuple[Piece, ...]


def _groups(mesh: AtomicMesh, x: Part, dims: Sequence[int], wanted: TensorSharding) -> list[_Group] | None:
    """The groups of a reshape to `dims`; None where a part is no interval of elements."""
    found: list[_Group] = []
    for old, new in _common(x.dims, dims):
        sizes, axes = x.dims[old], x.sharding.dims[old]
        have = _intervals(mesh, sizes, axes)
        if have is None:
            return None
        order = tuple(a for own in axes for a in own)
        made = wanted.dims[new]
        want = _intervals(mesh, dims[new], made) if tuple(a for own in made for a in own) == order else None
        if want is None:
            made = _dealt(mesh, dims[new], order)
            want = _intervals(mesh, dims[new], made)
        if want is None:
            return None
        given, taken = (
            prod(-(-n // mesh.size(own)) for n, own in zip(s, a, strict=True))
            for s, a in ((sizes, axes), (dims[new], made))
        )
        found.append(_Group(order, made, given, taken, tuple(pieces(have, want))))
    return found


def _common(old: Sequence[int], new: Sequence[int]) -> list[tuple[slice, slice]]:
    """Runs of dimensions with as many elements on both sides, as short as they can be."""
    found: list[tuple[slice, slice]] = []
    i = j = 0
    while i < len(old) or j < len(new):
        a, b = i, j
        left = right = 1
        while a == i or b == j or left != right:
            if (left <= right and a < len(old)) or b == len(new):
                left *= old[a]
                a += 1
            else:
                right *= new[b]
                b += 1
            if a == len(old) and b == len(new):
                break
        found.append((slice(i, a), slice(j, b)))
        i, j = a, b
    return found


def _intervals(mesh: AtomicMesh, sizes: Sequence[int], axes: Sequence[Axes]) -> list[Span] | None:
    """The elements, in row-major order, of each part of dimensions; None where a part is not one interval.

    That is so where shares have one element along all dimensions before the last that is split.
    """
    counts = [mesh.size(own) for own in axes]
    tiles = [-(-n // count) for n, count in zip(sizes, counts, strict=True)]
    last = max((d for d, own in enumerate(axes) if own), default=0)
    if any(tile > 1 for tile in tiles[:last]):
        return None
    found: list[Span] = []
    for k, place in enumerate(product(*map(range, counts))):
        start, limit = 0, 1
        for n, tile, at in zip(sizes, tiles, place, strict=True):
            low, high = min(at * tile, n), min((at + 1) * tile, n)
            start, limit = start * n + low, (start * n + low) + (limit - start) * (high - low)
        found.append(Span(k, start, limit))
    return found


def _dealt(mesh: AtomicMesh, sizes: Sequence[int], axes: Axes) -> tuple[Axes, ...]:
    """Atoms dealt to dimensions so that parts are intervals: one in single steps leaves the rest to the next."""
    made: list[Axes] = []
    rest = list(axes)
    for n in sizes:
        taken: list[int] = []
        while rest and mesh.size(taken) < n:
            taken.append(rest.pop(0))
        made.append(tuple(taken))
    if rest and made:
        made[-1] = (*made[-1], *rest)
    return tuple(made)
