"""Shardings over atomic axes: the form in which propagation and the partitioner calculate.

The axes of a program's mesh are cut into axes of prime size, the *atoms*. No sharding splits an atom. An axis, or a
part of one, is therefore a sequence of atoms, and lists of axes are compared, joined and cut as tuples of integers.

    mesh = AtomicMesh.of(Mesh((("x", 2), ("y", 4))))     # atoms: x of 2; y:(1)2 and y:(2)2
    s = mesh.read(parse("{mesh['x'=2,'y'=4], [{'y'}, {'x', ?}]}"), rank=2)
    s.dims                                                # ((1, 2), (0,))
    mesh.write(s)                                         # the sharding again
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from functools import cached_property, lru_cache
from math import prod

import numpy as np

from heron.hlo.sharding.mesh import Axis, Mesh, NamedSharding, Split
from heron.hlo.sharding.tiles import reject
from heron.hlo.sharding.value import Sharding
from heron.records import dataclass

#: atoms, major to minor
Axes = tuple[int, ...]
_NONE: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class TensorSharding:
    """The sharding of one array over the atoms of a mesh.

    Attributes:
        dims: the atoms that split each dimension, major to minor.
        is_open: for each dimension, whether propagation may split it further.
        replicated: atoms along which the value must stay whole.
        unreduced: atoms along which each device has a summand: the value is the sum over these devices.
        manual: atoms of enclosing manual computations. The array is local along them, and nothing may use them.
        priority: for each dimension the user's priority, 0 first; empty where no dimension has one.
    """

    dims: tuple[Axes, ...]
    is_open: tuple[bool, ...]
    replicated: frozenset[int] = _NONE
    unreduced: frozenset[int] = _NONE
    manual: frozenset[int] = _NONE
    priority: tuple[int, ...] = ()
    #: the hash, found when it is first asked for: searches look shardings up all the time
    _hash: int = field(default=0, init=False, repr=False, compare=False)

    def __hash__(self) -> int:
        if not self._hash:
            found = hash((self.dims, self.is_open, self.replicated, self.unreduced, self.manual, self.priority))
            object.__setattr__(self, "_hash", found)
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, TensorSharding):
            return NotImplemented
        return (
            self.dims == other.dims
            and self.is_open == other.is_open
            and self.unreduced == other.unreduced
            and self.replicated == other.replicated
            and self.manual == other.manual
            and self.priority == other.priority
        )

    @staticmethod
    def closed(
        dims: Iterable[Sequence[int]], unreduced: Iterable[int] = (), manual: Iterable[int] = ()
    ) -> TensorSharding:
        """The sharding that splits dimensions so and in no other way."""
        return _closed(tuple(map(tuple, dims)), frozenset(unreduced), frozenset(manual))

    @staticmethod
    def free(rank: int, manual: Iterable[int] = ()) -> TensorSharding:
        """No sharding yet: every dimension is open."""
        return TensorSharding(((),) * rank, (True,) * rank, manual=frozenset(manual))

    @staticmethod
    def whole(rank: int, manual: Iterable[int] = ()) -> TensorSharding:
        """The value is replicated on all devices."""
        return TensorSharding.closed(((),) * rank, manual=manual)

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def used(self) -> frozenset[int]:
        """Atoms that split a dimension or are unreduced."""
        return frozenset(a for axes in self.dims for a in axes) | self.unreduced

    @property
    def is_whole(self) -> bool:
        """Whether no dimension is split and nothing is to be summed."""
        return not self.unreduced and not any(self.dims)

    def with_dim(self, dim: int, axes: Axes) -> TensorSharding:
        """The sharding with other atoms for one dimension."""
        return replace(self, dims=(*self.dims[:dim], axes, *self.dims[dim + 1 :]))

    def close(self) -> TensorSharding:
        """The sharding with no open dimensions, and nothing said of replicated atoms."""
        if not (self.replicated or self.priority or True in self.is_open):
            return self
        return _closed(self.dims, self.unreduced, self.manual)


@dataclass(frozen=True)
class AtomicMesh:
    """A mesh whose axes are cut into atoms. `sizes` and `axes` have one entry for each atom, major to minor."""

    mesh: Mesh
    sizes: tuple[int, ...]
    #: the part of the mesh's axis that each atom is
    axes: tuple[Axis, ...]
    #: the worth of a byte sent along each atom, 1 on the fastest links; empty where all links are alike
    weights: tuple[float, ...] = ()
    #: the bytes that one collective more is worth: what the fastest links send in their latency; 0: only bytes count
    latency: float = 0.0

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.mesh, self.sizes, self.weights, self.latency))

    @staticmethod
    def of(mesh: Mesh) -> AtomicMesh:
        """The atoms of a mesh: the prime factors of each axis, the larger ones first."""
        sizes: list[int] = []
        axes: list[Axis] = []
        for number, (_, size) in enumerate(mesh.axes):
            before = 1
            for factor in prime_factors(size):
                sizes.append(factor)
                axes.append(Axis(number, before, factor))
                before *= factor
        return AtomicMesh(mesh, tuple(sizes), tuple(axes))

    @property
    def count(self) -> int:
        """The number of devices."""
        return prod(self.sizes)

    @cached_property
    def devices(self) -> np.ndarray:
        """The devices' numbers in an array with one dimension for each atom."""
        return np.array(self.mesh.tiles.devices, np.int64).reshape(self.sizes or (1,))

    def size(self, axes: Iterable[int]) -> int:
        """The number of parts into which these atoms split."""
        return prod([self.sizes[a] for a in axes])

    def local_dims(self, dims: Sequence[int], sharding: TensorSharding) -> tuple[int, ...]:
        """The dimensions of one device's part, rounded up where the parts are uneven."""
        return tuple(-(-d // self.size(axes)) for d, axes in zip(dims, sharding.dims, strict=True))

    def groups(self, axes: Sequence[int]) -> np.ndarray:
        """Devices that differ in these atoms alone, one group a row, members in row-major order of `axes`."""
        others = [a for a in range(len(self.sizes)) if a not in axes]
        return (
            self.devices.transpose([*others, *axes]).reshape(-1, self.size(axes)) if self.sizes else self.devices[None]
        )

    # -- conversion --------------------------------------------------------------------------------------------------
    def atoms(self, axis: Axis) -> Axes:
        """The atoms of an axis or a part of one. Raises HLO027 where the part cuts an atom."""
        begin, end = axis.span(self.mesh)
        found = [n for n, a in enumerate(self.axes) if a.number == axis.number and _inside(a, begin, end)]
        if self.size(found) != end // begin:
            reject(
                f"{axis.text(self.mesh)} cuts an axis of prime size",
                f"the atoms are {self.text(range(len(self.sizes)))}",
            )
        return tuple(found)

    def read(self, sharding: Sharding, rank: int) -> TensorSharding:
        """A sharding by axes of this mesh in atoms. Raises HLO027 for one of another mesh or another rank."""
        named = sharding.named
        if named is None or named.mesh != self.mesh:
            reject(f"{sharding} is not by the axes of {self.mesh}")
        splits = named.splits or (Split(),) * rank
        if len(splits) != rank:
            reject(f"{len(splits)} dimensions are split", f"the array has {rank}")
        found = TensorSharding(
            tuple(self._all(s.axes) for s in splits),
            tuple(s.is_open for s in splits),
            frozenset(self._all(named.replicated)),
            frozenset(self._all(named.unreduced)),
            frozenset(self._all(named.manual)),
            tuple(s.priority for s in splits) if any(s.priority for s in splits) else (),
        )
        closed = _closed(found.dims, found.unreduced, found.manual)
        return closed if closed == found else found

    def write(self, sharding: TensorSharding) -> Sharding:
        """The sharding by axes of the mesh, with parts of one axis merged again."""
        priority = sharding.priority or (0,) * sharding.rank
        dims = zip(sharding.dims, sharding.is_open, priority, strict=True)
        splits = tuple(Split(self.merged(axes), is_open, p) for axes, is_open, p in dims)
        others = (self.merged(sorted(s)) for s in (sharding.replicated, sharding.unreduced, sharding.manual))
        return Sharding.of_axes(NamedSharding(self.mesh, splits, *others))

    def merged(self, axes: Iterable[int]) -> tuple[Axis, ...]:
        """Atoms as axes of the mesh: neighbours become one part, and a part that is all of an axis the axis."""
        found: list[Axis] = []
        for atom in (self.axes[a] for a in axes):
            last = found[-1] if found else None
            if last is not None and last.number == atom.number and last.before * (last.size or 0) == atom.before:
                found[-1] = Axis(atom.number, last.before, (last.size or 1) * (atom.size or 1))
            else:
                found.append(atom)
        return tuple(Axis(a.number) if a.size == self.mesh.axes[a.number][1] else a for a in found)

    def text(self, axes: Iterable[int]) -> str:
        """Atoms as people read them: ``'x', 'y':(1)2``."""
        return ", ".join(a.text(self.mesh) for a in self.merged(axes))

    def _all(self, axes: Iterable[Axis]) -> Axes:
        return tuple(atom for axis in axes for atom in self.atoms(axis))


@lru_cache(1 << 14)
def _closed(dims: tuple[Axes, ...], unreduced: frozenset[int], manual: frozenset[int]) -> TensorSharding:
    """One object for equal shardings: comparing an object with itself takes no time."""
    return TensorSharding(dims, (False,) * len(dims), _NONE, unreduced, manual)


def _inside(atom: Axis, begin: int, end: int) -> bool:
    return begin <= atom.before and atom.before * (atom.size or 1) <= end


def prime_factors(number: int) -> list[int]:
    """The prime factors of a positive number, the largest first. Their number grows with its logarithm."""
    found: list[int] = []
    divisor = 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    return sorted(found + [number] * (number > 1), reverse=True)
