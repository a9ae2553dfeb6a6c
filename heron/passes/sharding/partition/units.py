"""Units of a plan: where there are many atoms, those that stay neighbours are one, so that the number of states does
not grow with the mesh."""

from __future__ import annotations

from heron.hlo.sharding.atoms import Axes

#: atoms up to which each is a unit of its own
FEW = 6


def units_of(
    count: int, old: tuple[Axes, ...], sums: frozenset[int], new: tuple[Axes, ...], kept: frozenset[int]
) -> list[Axes]:
    """Atoms in runs that are neighbours wherever they stand; few atoms one by one.

    Atoms that stand nowhere are left out.
    """
    before = _followers(old, sums, count)
    behind = _followers(new, kept, count)
    stand = {a for dims in (old, new) for axes in dims for a in axes} | sums | kept
    if len(stand) <= FEW:
        return [(a,) for a in sorted(stand)]
    follows: dict[int, int] = {}
    for a in stand:
        for b in ({before.get(a), behind.get(a)} - {None}) & stand:
            assert b is not None
            if _together(a, b, old, sums, before) and _together(a, b, new, kept, behind):
                follows[a] = b
    starts = stand - set(follows.values())
    units: list[Axes] = []
    for a in sorted(starts):
        unit = [a]
        while unit[-1] in follows:
            unit.append(follows[unit[-1]])
        units.append(tuple(unit))
    return units


def _followers(dims: tuple[Axes, ...], sums: frozenset[int], count: int) -> dict[int, int]:
    return {a: b for axes in dims for a, b in zip(axes, axes[1:], strict=False)}


def _together(a: int, b: int, dims: tuple[Axes, ...], sums: frozenset[int], follows: dict[int, int]) -> bool:
    """Whether `b` stands right behind `a`, or neither splits a dimension and both or none are to be added up."""
    if follows.get(a) == b:
        return True
    split = any(a in axes or b in axes for axes in dims)
    return not split and (a in sums) == (b in sums)
