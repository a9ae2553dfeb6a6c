"""Arithmetic on dimension lists that several passes share."""

from __future__ import annotations

from collections.abc import Sequence


def squeezed(dims: Sequence[int]) -> tuple[int, ...]:
    """The dimensions that are not 1."""
    return tuple([d for d in dims if d != 1])


def common_groups(old: Sequence[int], new: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """The factors of a reshape from `old` to `new`: the shortest runs of dimensions with equal products.

    Each run is (indices into old, indices into new); every index is in one run. Dimensions of size 1 that begin or end
    a run make runs of their own, with nothing on the other side. ``[2,3,4]`` to ``[6,2,2]`` gives
    ``[([0, 1], [0]), ([2], [1, 2])]``. Arrays without elements give one run of everything.
    """
    if 0 in old or 0 in new:
        return [(list(range(len(old))), list(range(len(new))))]
    groups: list[tuple[list[int], list[int]]] = []
    a = b = 0
    while a < len(old) or b < len(new):
        if a < len(old) and old[a] == 1:
            groups.append(([a], []))
            a += 1
            continue
        if b < len(new) and new[b] == 1:
            groups.append(([], [b]))
            b += 1
            continue
        left, right = [a], [b]
        p, q = old[a], new[b]
        a, b = a + 1, b + 1
        while p != q:
            if p < q:
                p *= old[a]
                left.append(a)
                a += 1
            else:
                q *= new[b]
                right.append(b)
                b += 1
        groups.append((left, right))
    return groups


def reshaped_broadcast(
    kept: Sequence[int], old: Sequence[int], new: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The form, after a reshape to `new`, of a broadcast into `old` with ascending dimensions `kept`.

    The dimensions of what is repeated and where they are in `new`; None where the reshape mixes them with others.
    """
    dims: list[int] = []
    places: list[int] = []
    for before, after in common_groups(old, new):
        own = [d for d in before if d in kept]
        if not own:
            continue
        if len([d for d in before if old[d] > 1 or d in kept]) != len(own):
            return None
        places += after
        dims += [new[d] for d in after]
    return tuple(dims), tuple(places)
