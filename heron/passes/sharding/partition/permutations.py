"""Exchanges of units with as many parts: shares go to other devices as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from heron.hlo.sharding.atoms import Axes


def aligned(
    dims: tuple[Axes, ...], goal: tuple[Axes, ...], sizes: Sequence[int], sums: frozenset[int]
) -> Iterator[tuple[Axes, ...]]:
    """Arrangements with as many parts along each dimension as `dims`, that begin more as the goal does.

    The first may take units from anywhere, the others reorder the units within dimensions.
    """
    seen = {dims}
    for anywhere in (True, False):
        for wanted_last in (True, False):
            found = _arranged(dims, goal, sizes, sums, anywhere, wanted_last)
            if found is not None and found not in seen:
                seen.add(found)
                yield found


def _arranged(
    dims: tuple[Axes, ...],
    goal: tuple[Axes, ...],
    sizes: Sequence[int],
    sums: frozenset[int],
    anywhere: bool,
    wanted_last: bool,
) -> tuple[Axes, ...] | None:
    """Each dimension as the goal has it as far as its parts go, then filled with units that are left over."""
    begun: list[list[int]] = []
    left: list[int] = []
    for axes, wanted in zip(dims, goal, strict=True):
        parts, taken = prod(sizes[u] for u in axes), list[int]()
        for u in wanted:
            if u in sums or parts % sizes[u] or not (anywhere or u in axes):
                break
            parts //= sizes[u]
            taken.append(u)
        begun.append(taken)
        left.append(parts)
    placed = {u for taken in begun for u in taken}
    wanted_anywhere = {u for axes in goal for u in axes}
    for d, axes in enumerate(dims):
        own = [u for u in axes if u not in placed]
        own.sort(key=lambda u: (u in wanted_anywhere) is wanted_last)
        others = [u for other in dims for u in other if u not in placed and u not in own]
        free = [u for u in range(len(sizes)) if u not in placed and u not in sums and u not in own and u not in others]
        filling = _filling([*own, *others, *free] if anywhere else own, left[d], sizes)
        if filling is None:
            return None
        begun[d] += filling
        placed.update(filling)
    return tuple(map(tuple, begun))


def _filling(pool: Sequence[int], parts: int, sizes: Sequence[int]) -> list[int] | None:
    """Units out of a pool, the first ones first, that together have so many parts."""
    if parts == 1:
        return []
    for n, u in enumerate(pool):
        if parts % sizes[u] == 0:
            rest = _filling(pool[n + 1 :], parts // sizes[u], sizes)
            if rest is not None:
                return [u, *rest]
    return None
