"""One mesh for a whole program: tiles, and axes of several meshes, as axes of a common one.

Each sharding assigns devices to the parts of each dimension. Where devices stand in the common order at equal
distances, these parts are *runs*: (stride, size). The ends of all runs cut the devices into the axes of the common
mesh::

    {devices=[4,2]<=[8]}            runs (2, 4) and (1, 2)
    {devices=[2,4]<=[4,2]T(1,0)}    runs (1, 2) and (2, 4)
    mesh['x'=2,'z'=4], [{'x'}, {}]  run  (4, 2)
    together                        axes of 2, 2 and 2: strides 4, 2 and 1
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from math import prod
from typing import NamedTuple, NoReturn

import numpy as np

from heron.errors import HeronError
from heron.hlo.sharding.atoms import AtomicMesh, Axes, TensorSharding, prime_factors
from heron.hlo.sharding.mesh import Axis, Mesh, NamedSharding, Split
from heron.hlo.sharding.tiles import Iota, reject
from heron.hlo.sharding.value import Kind, Sharding
from heron.records import dataclass

#: names of axes that stand for tiles; no axis of a program's own mesh begins so
_TILE_AXIS = "tile "
#: orders of devices that are tried, one after the other
_MOST_ORDERS = 8


class _Run(NamedTuple):
    """`size` places in the common order, `stride` apart."""

    stride: int
    size: int


#: a mesh and the parts of its axes that a sharding uses: (axis, size before it, size)
_Key = tuple[Mesh, tuple[tuple[int, int, int], ...]]
_Runs = dict[tuple[int, int, int], tuple[_Run, ...]]


def named_of(sharding: Sharding, rank: int, devices: int, open_dims: Iterable[int] = ()) -> NamedSharding:
    """A sharding of an array as axes of a mesh, of one made for it where it has none; `open_dims` become open.

    A value on one device by number counts as replicated. Raises HLO027 for tiles of another rank or too few devices.
    """
    if sharding.named is not None and not sharding.named.mesh.is_maximal:
        named = sharding.named
        splits = named.splits or (Split(),) * rank
        found = NamedSharding(named.mesh, splits, named.replicated, named.unreduced, named.manual)
        return _opened(found, open_dims)
    everything = Mesh(((f"{_TILE_AXIS}0", devices),))
    if sharding.kind is Kind.UNKNOWN:
        return NamedSharding(everything, (Split(is_open=True),) * rank)
    if sharding.tiles is None:
        whole = NamedSharding(everything, (Split(),) * rank)
        if sharding.kind is Kind.MANUAL:
            return NamedSharding(everything, whole.splits, manual=(Axis(0),))
        if sharding.kind is Kind.UNREDUCED:
            return NamedSharding(everything, whole.splits, unreduced=(Axis(0),))
        return _opened(whole, open_dims)
    if len(sharding.data_dims) != rank:
        reject(f"tiles along {len(sharding.data_dims)} dimensions of an array of {rank}", f"the sharding is {sharding}")
    dims = sharding.tiles.dims
    numbers = {d: n for n, d in enumerate(d for d, size in enumerate(dims) if size > 1)}
    axes = tuple((f"{_TILE_AXIS}{n}", dims[d]) for d, n in numbers.items())
    mesh = Mesh(axes, sharding.tiles.iota or sharding.tiles.listed) if axes else everything
    parts = [(Axis(numbers[d]),) if d in numbers else () for d in range(len(dims))]
    groups: dict[Kind, tuple[Axis, ...]] = {Kind.MANUAL: (), Kind.UNREDUCED: ()}
    for kind, axis in zip(sharding.subgroups, parts[rank:], strict=True):
        if kind in groups:
            groups[kind] += axis
    found = NamedSharding(
        mesh, tuple(map(Split, parts[:rank])), unreduced=groups[Kind.UNREDUCED], manual=groups[Kind.MANUAL]
    )
    return _opened(found, open_dims)


def _opened(named: NamedSharding, dims: Iterable[int]) -> NamedSharding:
    chosen = set(dims)
    if not chosen:
        return named
    splits = tuple(Split(s.axes, s.is_open or d in chosen, s.priority) for d, s in enumerate(named.splits))
    return NamedSharding(named.mesh, splits, named.replicated, named.unreduced, named.manual)


@dataclass
class Refinement:
    """The common mesh, and shardings by its atoms.

    Attributes:
        mesh: the common mesh.
        refused: shardings that no axes of the common mesh express.
    """

    mesh: AtomicMesh
    refused: list[NamedSharding] = field(default_factory=list)
    _known: dict[_Key, _Runs] = field(default_factory=dict)

    def convert(self, named: NamedSharding) -> TensorSharding | None:
        """The sharding by atoms of the common mesh; None where they cannot express it."""
        if named.mesh == self.mesh.mesh:
            return self.mesh.read(Sharding.of_axes(named), len(named.splits))
        runs = self._known.get(_key(named))
        if runs is None:
            return None
        mesh = named.mesh

        def atoms(axes: Iterable[Axis]) -> Axes:
            return tuple(a for axis in axes for run in runs.get(_part(axis, mesh), ()) for a in self._atoms(run))

        return TensorSharding(
            tuple(atoms(s.axes) for s in named.splits),
            tuple(s.is_open for s in named.splits),
            frozenset(atoms(named.replicated)),
            frozenset(atoms(named.unreduced)),
            frozenset(atoms(named.manual)),
            tuple(s.priority for s in named.splits) if any(s.priority for s in named.splits) else (),
        )

    def cannot(self, named: NamedSharding) -> NoReturn:
        """Raise HLO032 for a sharding that the mesh refuses."""
        _cannot(named.mesh, self.mesh.mesh)

    def stand_in(self, named: NamedSharding) -> tuple[NamedSharding, tuple[tuple[int, int], ...]]:
        """A sharding by the common mesh with as many tiles, for one that it refuses.

        Returns it with, for each device, the device that has its tile there. Raises HLO032 for values to be summed and
        manual axes.
        """
        tiles, kinds = named.tiles
        if kinds not in ((), ("replicated",)):
            self.cannot(named)
        left = list(range(len(self.mesh.sizes)))
        dims: list[Axes] = []
        for count in tiles.dims[: len(named.splits)]:
            chosen: list[int] = []
            for factor in prime_factors(count):
                chosen.append(next(a for a in left if self.mesh.sizes[a] == factor))
                left.remove(chosen[-1])
            dims.append(tuple(chosen))
        found = self.mesh.write(TensorSharding.closed(dims)).named
        assert found is not None
        return found, tuple(zip(tiles.devices, found.tiles[0].devices, strict=True))

    def _atoms(self, run: _Run) -> Axes:
        sizes = self.mesh.sizes
        strides = [prod(sizes[n + 1 :]) for n in range(len(sizes))]
        return tuple(n for n, stride in enumerate(strides) if run.stride <= stride < run.stride * run.size)


def refine(
    needed: Iterable[NamedSharding],
    wanted: Iterable[NamedSharding],
    devices: int,
    ends: Iterable[NamedSharding] = (),
) -> Refinement:
    """One mesh of that many devices that expresses all `needed` shardings, and of others as many as fit.

    Of the others, `ends` come before `wanted`. Devices keep their order where that can be. Raises HLO027 for a mesh of
    another number of devices, HLO032 for needed shardings that no mesh expresses together.
    """
    groups = [list(dict.fromkeys(group)) for group in (needed, ends, wanted)]
    everything = [named for group in groups for named in group]
    for named in everything:
        _check(named.mesh, devices)
    keys = list(dict.fromkeys(map(_key, everything)))
    first, second = ({_key(named) for named in group} for group in groups[:2])
    best: tuple[tuple[int, int], _Fit] | None = None
    for ids in _orders(keys, devices):
        fit = _fit(keys, ids, devices)
        misfits = len(first - fit.runs.keys()), len(second - fit.runs.keys())
        if best is None or misfits < best[0]:
            best = misfits, fit
        if misfits == (0, 0):
            break
    assert best is not None
    (lost, _), fit = best
    if lost:
        mesh = next(k[0] for k in keys if k in first and k not in fit.runs)
        _cannot(mesh, *dict.fromkeys(k[0] for k in keys if k[0] != mesh))
    cuts = _with_whole_axes(everything, fit, devices)
    mesh = Mesh(_axes(sorted(cuts, reverse=True), _spans(everything, fit, devices)), fit.devices)
    found = Refinement(AtomicMesh.of(mesh), _known=fit.runs)
    found.refused = [named for named in everything if _key(named) not in fit.runs]
    return found


def _orders(keys: Iterable[_Key], devices: int) -> list[Iota | tuple[int, ...] | None]:
    """Orders of the devices to try: as they are numbered, then as meshes list them."""
    found = dict.fromkeys(mesh.devices for mesh, _ in keys if mesh.size == devices and mesh.devices is not None)
    return [None, *found][:_MOST_ORDERS]


def _check(mesh: Mesh, devices: int) -> None:
    if mesh.size != devices and mesh.size != 1:
        reject(f"a mesh of {mesh.size} devices in a program for {devices}", f"the mesh is {mesh}")
    if isinstance(mesh.devices, tuple) and mesh.size > 1 and sorted(mesh.devices) != list(range(devices)):
        reject(f"a mesh must name each of the {devices} devices once", f"the mesh is {mesh}")


def _cannot(mesh: Mesh, *others: Mesh) -> NoReturn:
    shown = [str(m).replace(f"'{_TILE_AXIS}", "'") for m in (mesh, *others)]
    raise HeronError(
        "HLO032",
        f"the shardings of a program of {max(mesh.size, *(m.size for m in others))} devices do not fit into one mesh",
        why=f"one is by {shown[0]}, others by {'; '.join(shown[1:])}",
        hint="use one mesh for the arguments, the results and shard_map of a program",
    )


# -- runs ------------------------------------------------------------------------------------------------------------
def _part(axis: Axis, mesh: Mesh) -> tuple[int, int, int]:
    begin, end = axis.span(mesh)
    return axis.number, begin, end // begin


def _key(named: NamedSharding) -> _Key:
    parts = {_part(axis, named.mesh) for axis in named.axes}
    return named.mesh, tuple(sorted(p for p in parts if p[2] > 1))


@dataclass(frozen=True)
class _Fit:
    """An order of the devices, the runs of the keys that fit it together, and where the runs end."""

    devices: Iota | tuple[int, ...] | None
    runs: dict[_Key, _Runs]
    cuts: set[int]


def _fit(keys: Iterable[_Key], ids: Iota | tuple[int, ...] | None, devices: int) -> _Fit:
    """The runs of keys in an order of the devices, as many as fit, the first ones first."""
    order = np.array(Mesh((("", devices),), ids).tiles.devices)
    position = np.empty(devices, np.int64)
    position[order] = np.arange(devices)
    found: dict[_Key, _Runs] = {}
    cuts = {1, devices}
    for key in keys:
        runs = _runs(key, position)
        more = cuts | _ends(runs or {})
        if runs is not None and _is_chain(more):
            found[key] = runs
            cuts = more
    return _Fit(ids, found, cuts)


def _ends(runs: _Runs) -> set[int]:
    return {end for part in runs.values() for r in part for end in (r.stride, r.stride * r.size)}


def _is_chain(cuts: set[int]) -> bool:
    ordered = sorted(cuts)
    return all(b % a == 0 for a, b in zip(ordered, ordered[1:], strict=False))


def _runs(key: _Key, position: np.ndarray) -> _Runs | None:
    """The runs of each part of a mesh's axes; None where devices do not stand at equal distances.

    Devices along which a value is replicated may have any order.
    """
    mesh, parts = key
    if not parts:
        return {}
    dims: list[int] = []
    place: dict[tuple[int, int, int], int] = {}
    for number, (_, size) in enumerate(mesh.axes):
        ends = sorted({1, size, *(e for n, b, s in parts if n == number for e in (b, b * s))})
        for begin, end in zip(ends, ends[1:], strict=False):
            if end % begin:
                return None
            place[number, begin, end // begin] = len(dims)
            dims.append(end // begin)
    used = [place[p] for p in parts]
    rest = [d for d in range(len(dims)) if d not in used]
    places = position[np.array(mesh.tiles.devices)].reshape(dims).transpose([*used, *rest])
    places = np.sort(places.reshape(*(dims[d] for d in used), -1), axis=-1)
    steps = [_along(places, d) for d in range(places.ndim)]
    total = sum(s.reshape([-1 if d == n else 1 for d in range(places.ndim)]) for n, s in enumerate(steps))
    if places.flat[0] != 0 or not np.array_equal(total, places):
        return None
    found = [_radix(s) for s in steps[: len(parts)]]
    return {p: tuple(r) for p, r in zip(parts, found, strict=True) if r is not None} if None not in found else None


def _along(places: np.ndarray, dim: int) -> np.ndarray:
    """The distances along a dimension."""
    index: list[int | slice] = [0] * places.ndim
    index[dim] = slice(None)
    return places[tuple(index)] - places.flat[0]


def _radix(values: np.ndarray) -> list[_Run] | None:
    """Numbers that count up in a mixed radix, as runs from major to minor; None for other numbers."""
    found: list[_Run] = []
    block, size = 1, len(values)
    while block < size:
        stride = int(values[block])
        heads = values[::block]
        equal = heads == np.arange(len(heads)) * stride
        count = len(heads) if equal.all() else int(np.argmin(equal))
        while len(heads) % count:
            count -= 1
        if stride < 1 or count < 2:
            return None
        found.insert(0, _Run(stride, count))
        block *= count
    total = np.zeros(1, np.int64)
    for run in found:
        total = (total[:, None] + np.arange(run.size) * run.stride).reshape(-1)
    return found if np.array_equal(total, values) else None


# -- the common mesh -------------------------------------------------------------------------------------------------
def _whole_axes(shardings: Iterable[NamedSharding]) -> list[tuple[str, _Key]]:
    """The axes of the program's own meshes, by name."""
    meshes = dict.fromkeys(named.mesh for named in shardings)
    return [
        (name, (mesh, ((number, 1, size),)))
        for mesh in meshes
        for number, (name, size) in enumerate(mesh.axes)
        if size > 1 and not name.startswith(_TILE_AXIS)
    ]


def _with_whole_axes(shardings: Iterable[NamedSharding], fit: _Fit, devices: int) -> set[int]:
    """The cuts, with the ends of axes that no sharding uses if they fit; the mesh is easier to read with them."""
    both = fit.cuts | _fit([key for _, key in _whole_axes(shardings)], fit.devices, devices).cuts
    return both if _is_chain(both) else fit.cuts


def _spans(shardings: Iterable[NamedSharding], fit: _Fit, devices: int) -> dict[tuple[int, int], str]:
    """The names of axes by the cuts between which they lie, (outer, inner)."""
    found: dict[tuple[int, int], str] = {}
    for name, key in _whole_axes(shardings):
        runs = _fit([key], fit.devices, devices).runs
        for run in (r for part in runs.get(key, {}).values() for r in part):
            if len(runs[key][key[1][0]]) == 1 and name not in found.values():
                found.setdefault((run.stride * run.size, run.stride), name)
    return found


def _axes(cuts: Sequence[int], names: dict[tuple[int, int], str]) -> tuple[tuple[str, int], ...]:
    """The axes between cuts, from the largest to 1: whole axes by their names where atoms of primes allow it."""
    found: list[tuple[str, int]] = []
    taken = set(names.values())
    n = 0
    while n + 1 < len(cuts):
        last = next((m for m in range(len(cuts) - 1, n, -1) if _is_axis(cuts[n : m + 1], names)), None)
        if last is not None:
            name = names[cuts[n], cuts[last]]
        else:
            last, name = n + 1, _fresh(taken)
        taken.add(name)
        found.append((name, cuts[n] // cuts[last]))
        n = last
    return tuple(found)


def _is_axis(cuts: Sequence[int], names: dict[tuple[int, int], str]) -> bool:
    """Whether all between the first cut and the last is one named axis, whose atoms end at each of them."""
    if (cuts[0], cuts[-1]) not in names:
        return False
    ends = {1}
    before = 1
    for factor in prime_factors(cuts[0] // cuts[-1]):
        before *= factor
        ends.add(before)
    return all(cuts[0] // c in ends for c in cuts)


def _fresh(taken: set[str]) -> str:
    n = 0
    while f"axis_{n}" in taken:
        n += 1
    return f"axis_{n}"
