"""Tile assignments: which device has which tile, as a list of devices or as a transposed iota.

``[4,2]T(1,0)`` stands for 0, 1, 2, … laid out as 4 x 2 and then transposed; it says in a few numbers what a list says
in as many as there are devices. Source: https://openxla.org/xla/shardings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from math import prod
from typing import NoReturn

import numpy as np

from heron.errors import HeronError
from heron.records import dataclass

#: more devices than any machine has, and few enough to hold in memory
MAX_DEVICES = 1 << 20


def reject(what: str, why: str | None = None, hint: str | None = None) -> NoReturn:
    """Raise HLO027: a sharding that means nothing."""
    raise HeronError("HLO027", f"sharding: {what}", why=why, hint=hint)


@dataclass(frozen=True)
class Iota:
    """0, 1, 2, … in row-major order of `dims`, with dimensions then permuted by `perm`. Raises HLO027."""

    dims: tuple[int, ...]
    perm: tuple[int, ...]

    def __post_init__(self) -> None:
        if sorted(self.perm) != list(range(len(self.dims))):
            reject(f"{list(self.perm)} does not permute the dimensions {list(self.dims)}")
        if not self.dims or min(self.dims) < 1:
            reject("an iota needs dimensions of at least 1", f"they are {list(self.dims)}")

    @staticmethod
    def of(dims: Iterable[int], perm: Iterable[int] | None = None) -> Iota:
        """The iota with these dimensions; without `perm`, not transposed."""
        sizes = tuple(dims)
        return Iota(sizes, tuple(range(len(sizes))) if perm is None else tuple(perm))

    def __str__(self) -> str:
        text = f"[{','.join(map(str, self.dims))}]"
        return text if len(self.dims) == 1 else f"{text}T({','.join(map(str, self.perm))})"

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.dims)

    @property
    def array(self) -> np.ndarray:
        """The numbers, in the permuted dimensions."""
        return np.arange(self.size).reshape(self.dims).transpose(self.perm)

    @cached_property
    def canonical(self) -> Iota:
        """The shortest form of the same numbers: no dimensions of 1, none that stay side by side."""
        sizes: dict[int, int] = {}
        order: list[int] = []  # dimensions that begin a run, as they are permuted
        last = None
        for d in self.perm:
            if self.dims[d] == 1:
                continue
            between = range(last + 1, d) if last is not None and last < d else None
            if between is not None and all(self.dims[k] == 1 for k in between):
                sizes[order[-1]] *= self.dims[d]
            else:
                order.append(d)
                sizes[d] = self.dims[d]
            last = d
        if not order:
            return Iota((1,), (0,))
        kept = sorted(order)
        return Iota(tuple(sizes[d] for d in kept), tuple(kept.index(d) for d in order))

    def split(self, sizes: Sequence[int]) -> tuple[Iota, list[list[int]]] | None:
        """The same iota with permuted dimensions so fine that each of `sizes` is a product of some of them.

        Returns it with, for each of `sizes`, the positions in its `perm`; None when the two do not divide.
        """
        fine: list[int] = []
        parts: list[list[int]] = [[] for _ in self.dims]  # of each dimension, positions in `fine`
        groups: list[list[int]] = []
        pending = [(d, self.dims[d]) for d in reversed(self.perm)]
        for size in sizes:
            group: list[int] = []
            while size > 1:
                d, left = pending.pop()
                if left == 1:
                    continue
                # the outer part of the dimension, as much as this size takes
                taken = size if left % size == 0 else left
                if size % taken:
                    return None
                group.append(len(fine))
                parts[d].append(len(fine))
                fine.append(taken)
                size //= taken
                pending.append((d, left // taken))
            groups.append(group)
        by_dimension = [n for positions in parts for n in positions]
        if not fine:
            return Iota((1,), (0,)), [[] for _ in sizes]
        dims = tuple(fine[n] for n in by_dimension)
        return Iota(dims, tuple(by_dimension.index(n) for n in range(len(fine)))), groups


@dataclass(frozen=True, eq=False)
class TileAssignment:
    """An array of dimensions `dims` with a device for each tile, as an iota or as devices in row-major order.

    Equal when they assign equally, however that is written. Raises HLO027.
    """

    dims: tuple[int, ...]
    iota: Iota | None = None
    listed: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.dims or min(self.dims) < 1:
            reject("tiles need dimensions of at least 1", f"they are {list(self.dims)}")
        given = len(self.listed) if self.iota is None else self.iota.size
        if given != self.size:
            reject(f"{self.size} tiles and {given} devices", f"the tiles are {list(self.dims)}")
        if self.size > MAX_DEVICES:
            reject(f"{self.size} tiles", f"the limit is {MAX_DEVICES}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TileAssignment) or self.dims != other.dims:
            return False
        if self.iota is not None and other.iota is not None:
            return self.iota.canonical == other.iota.canonical
        return self.devices == other.devices

    def __hash__(self) -> int:
        return hash(self.dims)

    def __str__(self) -> str:
        to = ",".join(map(str, self.listed)) if self.iota is None else f"<={self.iota}"
        return f"[{','.join(map(str, self.dims))}]{to}"

    @property
    def size(self) -> int:
        """The number of tiles."""
        return prod(self.dims)

    @cached_property
    def devices(self) -> tuple[int, ...]:
        """The device of every tile, in row-major order."""
        return self.listed if self.iota is None else tuple(self.iota.array.reshape(-1).tolist())

    @cached_property
    def array(self) -> np.ndarray:
        """The devices as an array of `dims`; not to be written to."""
        found = np.array(self.devices, np.int64).reshape(self.dims)
        found.flags.writeable = False
        return found

    @cached_property
    def places(self) -> dict[int, tuple[int, ...]]:
        """The tile of every device, the first one where it has several."""
        found: dict[int, tuple[int, ...]] = {}
        for place, device in zip(np.ndindex(*self.dims), self.devices, strict=True):
            found.setdefault(device, place)
        return found

    def reshape(self, dims: Iterable[int]) -> TileAssignment:
        """The same order of devices in other dimensions."""
        return TileAssignment(tuple(dims), self.iota, self.listed)

    def transpose(self, perm: Sequence[int]) -> TileAssignment:
        """Dimensions permuted; an iota stays one where that can be."""
        dims = tuple(self.dims[d] for d in perm)
        moved = [d for d in perm if self.dims[d] > 1]
        if moved == sorted(moved):
            return self.reshape(dims)
        found = None if self.iota is None else self.iota.canonical.split(self.dims)
        if found is None:
            return TileAssignment(dims, None, tuple(self.array.transpose(perm).reshape(-1).tolist()))
        fine, groups = found
        order = [n for d in perm for n in groups[d]]
        iota = Iota(fine.dims, tuple(fine.perm[n] for n in order)) if order else fine
        return TileAssignment(dims, iota.canonical)

    def sorted_within(self, dim: int) -> TileAssignment:
        """Devices along dimension `dim`, the last one, in ascending order."""
        found = None if self.iota is None else self.iota.canonical.split(self.dims)
        if found is None:
            ordered = tuple(np.sort(self.array, axis=dim).reshape(-1).tolist())
            return self if ordered == self.devices else TileAssignment(self.dims, None, ordered)
        fine, groups = found
        first = len(fine.perm) - len(groups[dim])
        perm = (*fine.perm[:first], *sorted(fine.perm[first:]))
        return TileAssignment(self.dims, Iota(fine.dims, perm).canonical)

    def as_list(self) -> TileAssignment:
        """The same with devices listed, the older form."""
        return TileAssignment(self.dims, None, self.devices)

    def canonical(self) -> TileAssignment:
        """The same with the shortest iota."""
        return self if self.iota is None else TileAssignment(self.dims, self.iota.canonical)
