"""Bytes that a device sends when an array changes its sharding, by the least ring collectives.

An estimate for choices: planners may find a way that is not dearer, or find none as cheap for uneven shards.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from itertools import takewhile
from math import prod

from heron.analysis.cost.communication import WAYS
from heron.hlo.ir.shape import Shape
from heron.hlo.sharding.atoms import AtomicMesh, Axes, TensorSharding


def reshard_bytes(mesh: AtomicMesh, shape: Shape, source: TensorSharding, target: TensorSharding) -> float:
    """Bytes that a device sends to bring an array from one sharding to another; 0 where nothing is sent."""
    if source.dims == target.dims and source.unreduced <= target.unreduced:
        return 0.0
    return moved_bytes(mesh.sizes, mesh.weights, shape.dims, shape.element_type.bits / 8, source, target)


@lru_cache(maxsize=1 << 16)
def moved_bytes(
    sizes: tuple[int, ...],
    weights: tuple[float, ...],
    dims: tuple[int, ...],
    width: float,
    source: TensorSharding,
    target: TensorSharding,
) -> float:
    """`reshard_bytes` of an array of these dimensions, whose elements have `width` bytes, for atoms of these sizes and
    weights."""

    def count(axes: Iterable[int]) -> int:
        return prod([sizes[a] for a in axes])

    def sent(opcode: str, axes: Collection[int]) -> float:
        return sent_part(opcode, sizes, weights, axes)

    local = width * prod([-(-d // count(axes)) for d, axes in zip(dims, source.dims, strict=True)])
    lost, gained, swapped = _changes(source.dims, target.dims)
    summed = source.unreduced - target.unreduced
    local /= count([a for a in gained if a not in lost and a not in source.unreduced])
    scattered = [a for a in summed if a in gained]
    found = local * sent("reduce-scatter", scattered)
    local /= count(scattered)
    found += local * sent("all-reduce", [a for a in summed if a not in gained])
    found += local * sent("all-to-all", [a for a in lost if a in gained])
    if swapped:
        found += local * max([weights[a] for a in swapped], default=1.0) if weights else local
    dropped = [a for a in lost if a not in gained]
    return found + local * count(dropped) * sent("all-gather", dropped)


def sent_part(opcode: str, sizes: Sequence[int], weights: Sequence[float], axes: Collection[int]) -> float:
    """The bytes sent for each byte of an array by a collective among the devices along these atoms, in rings: first of
    those along the atoms of the nearest links, each of which then exchanges its share with the others."""
    way = WAYS[opcode]
    if not axes:
        return 0.0
    if not weights:
        return way.part(prod([sizes[a] for a in axes]))
    found, left = 0.0, 1.0
    for weight in sorted({weights[a] for a in axes}):
        members = prod([sizes[a] for a in axes if weights[a] == weight])
        found += left * weight * way.part(members)
        left /= members if way.shrinks else 1
    return found


def _changes(source: tuple[Axes, ...], target: tuple[Axes, ...]) -> tuple[set[int], set[int], set[int]]:
    """Atoms that leave a dimension, atoms that come into one, and those along which parts change places within a
    dimension."""
    lost: set[int] = set()
    gained: set[int] = set()
    swapped: set[int] = set()
    for old, new in zip(source, target, strict=True):
        if old == new:
            continue
        kept = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
        gone, come = old[kept:], new[kept:]
        stay = set(gone) & set(come)
        lost.update(a for a in gone if a not in stay)
        gained.update(a for a in come if a not in stay)
        if stay or (gone and come):
            swapped.update(gone, come)
    return lost, gained, swapped
