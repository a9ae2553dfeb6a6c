"""Bytes that a device sends when an array changes its sharding, by the least ring collectives.

An estimate for choices: planners may find a way that is not dearer, or find none as cheap for uneven shards.
"""

from __future__ import annotations

from collections.abc import Sequence
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
    return moved_bytes(mesh.sizes, shape.dims, shape.element_type.bits / 8, source, target)


@lru_cache(maxsize=1 << 16)
def moved_bytes(
    sizes: tuple[int, ...], dims: tuple[int, ...], width: float, source: TensorSharding, target: TensorSharding
) -> float:
    """`reshard_bytes` of an array of these dimensions, whose elements have `width` bytes, for atoms of these sizes."""

    def count(axes: Sequence[int]) -> int:
        return prod(sizes[a] for a in axes)

    local = width * prod(-(-d // count(axes)) for d, axes in zip(dims, source.dims, strict=True))
    lost, gained, swaps = _changes(source.dims, target.dims)
    summed = source.unreduced - target.unreduced
    local /= count([a for a in gained if a not in lost and a not in source.unreduced])
    sent = 0.0
    scattered, rest = count([a for a in summed if a in gained]), count([a for a in summed if a not in gained])
    if scattered > 1:
        sent += local * WAYS["reduce-scatter"].part(scattered)
        local /= scattered
    if rest > 1:
        sent += local * WAYS["all-reduce"].part(rest)
    if (moved := count([a for a in lost if a in gained])) > 1:
        sent += local * WAYS["all-to-all"].part(moved)
    if swaps:
        sent += local * WAYS["collective-permute"].part(2)
    if (dropped := count([a for a in lost if a not in gained])) > 1:
        sent += local * dropped * WAYS["all-gather"].part(dropped)
    return sent


def _changes(source: tuple[Axes, ...], target: tuple[Axes, ...]) -> tuple[set[int], set[int], bool]:
    """Atoms that leave a dimension, atoms that come into one, and whether parts change places within a dimension."""
    lost: set[int] = set()
    gained: set[int] = set()
    swaps = False
    for old, new in zip(source, target, strict=True):
        if old == new:
            continue
        kept = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
        gone, come = old[kept:], new[kept:]
        stay = set(gone) & set(come)
        lost.update(a for a in gone if a not in stay)
        gained.update(a for a in come if a not in stay)
        swaps = swaps or bool(stay) or bool(gone and come)
    return lost, gained, swaps
