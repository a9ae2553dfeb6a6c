"""Sharding: how a value is spread over devices. Frozen and hashable; made by `parse` or the constructors below."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from dataclasses import field, replace
from functools import cached_property, lru_cache
from math import prod

from heron.hlo.ir.metadata import Metadata, print_metadata
from heron.hlo.ir.shape import Shape, ShapeIndex, array
from heron.hlo.sharding.mesh import NamedSharding
from heron.hlo.sharding.tiles import Iota, TileAssignment, reject
from heron.records import dataclass


class Kind(enum.Enum):
    """The kind of a sharding, or of a subgroup's members, in the order of XLA's numbers."""

    REPLICATED = "replicated"
    MAXIMAL = "maximal"
    TUPLE = "tuple"
    TILED = "devices"
    MANUAL = "manual"
    UNKNOWN = "unknown"
    UNREDUCED = "unreduced"


#: what devices that share a tile may do with it, in canonical order
SUBGROUPS = (Kind.MANUAL, Kind.UNREDUCED, Kind.UNKNOWN, Kind.REPLICATED)


@dataclass(frozen=True, slots=True)
class ShardGroup:
    """Values with one number are sharded alike: just as each other (``shard_as``), or as well as can be."""

    number: int
    exactly: bool = True

    def __str__(self) -> str:
        return f"shard_{'as' if self.exactly else 'like'} {self.number}"


@dataclass(frozen=True)
class Sharding:
    """The way in which a value is spread over devices. Raises HLO027 if the parts do not form a sharding.

    ``device``: the one of a maximal sharding. ``tiles``: who has which tile; its last dimensions are not of the data
    but number the devices that share a tile, and `subgroups` says what those do. ``elements``: of a tuple sharding, one
    for each leaf. ``named``: axes of a mesh instead of all that; `plain` turns them into tiles. Metadata does not count
    in comparisons, nor whether tiles are written as list or iota.
    """

    kind: Kind
    device: int = 0
    tiles: TileAssignment | None = None
    subgroups: tuple[Kind, ...] = ()
    elements: tuple[Sharding, ...] = ()
    named: NamedSharding | None = None
    group: ShardGroup | None = None
    metadata: tuple[Metadata, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if any(k not in SUBGROUPS for k in self.subgroups):
            reject(f"subgroups may be {', '.join(k.value for k in SUBGROUPS)}")
        if self.tiles is not None and len(self.subgroups) > len(self.tiles.dims):
            reject(f"{len(self.subgroups)} kinds of subgroups", f"the tiles are {list(self.tiles.dims)}")
        if (self.kind is Kind.TILED and self.named is None) != (self.tiles is not None):
            reject("tiles and only they have a tile assignment")
        if any(e.kind is Kind.TUPLE for e in self.elements):
            reject("a tuple sharding has one element for each leaf, so none is a tuple")

    def __str__(self) -> str:
        if self.kind is Kind.TUPLE:
            parts = [(f"/*index={n}*/" if n and n % 5 == 0 else "") + str(e) for n, e in enumerate(self.elements)]
            return "{" + ", ".join(parts) + "}"
        parts = [self._body()]
        if self.group is not None:
            parts.append(str(self.group))
        if not self.metadata:
            return "{" + " ".join(parts) + "}"
        texts = [print_metadata(m) or "{}" for m in self.metadata]
        if self.named is not None:
            parts[0] += f", metadata={{{', '.join(texts)}}}"
            return "{" + " ".join(parts) + "}"
        parts.append("metadata=" + (texts[0] if len(texts) == 1 else "{" + ", ".join(texts) + "}"))
        return "{" + " ".join(parts) + "}"

    def _body(self) -> str:
        if self.named is not None:
            return str(self.named)
        if self.kind is Kind.MAXIMAL:
            return f"maximal device={self.device}"
        if self.tiles is None:
            return self.kind.value
        if not self.subgroups:
            return f"devices={self.tiles}"
        if self.subgroups == (Kind.REPLICATED,):
            return f"devices={self.tiles} last_tile_dim_replicate"
        return f"devices={self.tiles} last_tile_dims={{{', '.join(k.value for k in self.subgroups)}}}"

    # -- constructors ------------------------------------------------------------------------------------------------
    @staticmethod
    def replicated() -> Sharding:
        """Every device has all of it."""
        return _PLAIN[Kind.REPLICATED]

    @staticmethod
    def manual() -> Sharding:
        """The program says itself what each device has."""
        return _PLAIN[Kind.MANUAL]

    @staticmethod
    def unknown() -> Sharding:
        """To be found by propagation."""
        return _PLAIN[Kind.UNKNOWN]

    @staticmethod
    def unreduced() -> Sharding:
        """Every device has a part that must be added up."""
        return _PLAIN[Kind.UNREDUCED]

    @staticmethod
    def maximal(device: int) -> Sharding:
        """One device has all of it."""
        return Sharding(Kind.MAXIMAL, device)

    @staticmethod
    def tile(
        dims: Iterable[int],
        devices: Iota | Iterable[int] | None = None,
        subgroups: Iterable[Kind] = (),
    ) -> Sharding:
        """So many tiles along each dimension, then devices of each subgroup; `devices` in order by default."""
        sizes = tuple(dims)
        if devices is None:
            devices = Iota.of((max(1, prod(sizes)),))
        iota = devices if isinstance(devices, Iota) else None
        tiles = TileAssignment(sizes, iota, () if isinstance(devices, Iota) else tuple(devices))
        return Sharding(Kind.TILED, tiles=tiles, subgroups=tuple(subgroups))

    @staticmethod
    def tuple(elements: Iterable[Sharding]) -> Sharding:
        """The shardings of the leaves of a tuple, depth first."""
        return Sharding(Kind.TUPLE, elements=(*elements,))

    @staticmethod
    def of_axes(named: NamedSharding) -> Sharding:
        """By axes of a mesh."""
        return Sharding(_lowered(named).kind, named=named)

    # -- questions ---------------------------------------------------------------------------------------------------
    @cached_property
    def plain(self) -> Sharding:
        """The same without axes of a mesh, in canonical form."""
        found = self if self.named is None else _lowered(self.named)
        return replace(found, group=self.group, metadata=self.metadata) if found is not self else self

    @property
    def is_tuple(self) -> bool:
        return self.kind is Kind.TUPLE

    def _all(self, test: Callable[[Sharding], bool]) -> bool:
        return all(map(test, self.elements)) if self.kind is Kind.TUPLE else test(self)

    @property
    def is_replicated(self) -> bool:
        """Whether every device has all of it (all of every element)."""
        return self._all(lambda s: s.kind is Kind.REPLICATED)

    @property
    def is_unreduced(self) -> bool:
        return self._all(lambda s: s.kind is Kind.UNREDUCED)

    @property
    def is_tile_maximal(self) -> bool:
        """Whether a tile is as large as the value: replicated, or on one device."""
        return self._all(lambda s: s.kind in (Kind.REPLICATED, Kind.MAXIMAL))

    @property
    def is_tiled(self) -> bool:
        return self._all(lambda s: s.kind is Kind.TILED)

    @property
    def data_dims(self) -> tuple[int, ...]:
        """The number of tiles along each dimension of the data. Empty if nothing is tiled."""
        tiles, subgroups = self.plain.tiles, self.plain.subgroups
        return () if tiles is None else tiles.dims[: len(tiles.dims) - len(subgroups)]

    @property
    def num_tiles(self) -> int:
        """The number of different tiles; devices may share them."""
        return prod(self.data_dims)

    @property
    def num_devices(self) -> int | None:
        """The number of devices with tiles; None if it is not stated."""
        if self.kind is Kind.MAXIMAL:
            return 1
        tiles = self.plain.tiles
        return None if tiles is None else tiles.size

    def subgroup_dim(self, kind: Kind) -> int | None:
        """The dimension of the tile assignment that numbers the devices of a subgroup, if there is one."""
        found = self.plain.subgroups
        return len(self.data_dims) + found.index(kind) if kind in found else None

    def subgroup_place(self, kind: Kind, device: int) -> int:
        """The number of a device, from 0, among those that have one tile and are of that kind; 0 if there are none."""
        plain = self.plain
        if plain.tiles is None:
            return device if plain.kind is kind else 0
        dim = self.subgroup_dim(kind)
        return 0 if dim is None else plain.tiles.places[device][dim]

    def uses_device(self, device: int) -> bool:
        """Whether the device has a part of it."""
        if self.kind is Kind.TUPLE:
            return any(e.uses_device(device) for e in self.elements)
        plain = self.plain
        if plain.kind is Kind.MAXIMAL:
            return plain.device == device
        return plain.tiles is None or device in plain.tiles.places

    @property
    def unique_device(self) -> int | None:
        """The one device that has it, all elements of it, if there is such a one."""
        if self.kind is Kind.TUPLE:
            found = {e.unique_device for e in self.elements}
            return found.pop() if len(found) == 1 else None
        return self.plain.device if self.kind is Kind.MAXIMAL else None

    def tile_index(self, device: int) -> tuple[int, ...]:
        """The tile of a device, along each dimension of the data. Raises HLO027 if it has none."""
        tiles = self._tiles()
        place = tiles.places.get(device)
        if place is None:
            reject(f"device {device} has no tile", f"the sharding is {self}")
        return place[: len(self.data_dims)]

    def devices_of(self, index: Sequence[int]) -> tuple[int, ...]:
        """The devices that share a tile. Raises HLO027 when there is no such tile."""
        dims = self.data_dims
        if len(index) != len(dims) or any(not 0 <= n < d for n, d in zip(index, dims, strict=True)):
            reject(f"there is no tile {list(index)}", f"the tiles are {list(dims)}")
        return tuple(self._tiles().array[tuple(index)].reshape(-1).tolist())

    def tile_shape(self, shape: Shape, device: int | None = None) -> Shape:
        """The shape of a tile; of that on `device`, which may be smaller at the end. Raises HLO027."""
        if self.kind is not Kind.TILED:
            return shape
        dims = self._tile_dims(shape)
        if device is not None:
            begin, end = self.tile_offset(shape, device), self.tile_limit(shape, device)
            dims = tuple(e - b for b, e in zip(begin, end, strict=True))
        return array(shape.element_type, dims, shape.layout, shape.dynamic)

    def tile_offset(self, shape: Shape, device: int) -> tuple[int, ...]:
        """The start of a device's tile. Raises HLO027."""
        if self.kind is not Kind.TILED:
            return (0,) * shape.rank
        sizes = self._tile_dims(shape)
        return tuple(min(n * s, d) for n, s, d in zip(self.tile_index(device), sizes, shape.dims, strict=True))

    def tile_limit(self, shape: Shape, device: int) -> tuple[int, ...]:
        """The end of a device's tile. Raises HLO027."""
        if self.kind is not Kind.TILED:
            return shape.dims
        sizes = self._tile_dims(shape)
        return tuple(min((n + 1) * s, d) for n, s, d in zip(self.tile_index(device), sizes, shape.dims, strict=True))

    def for_leaf(self, shape: Shape, index: ShapeIndex) -> Sharding:
        """The sharding of a leaf of a value of that shape. Raises HLO027 when there is none."""
        if self.kind is not Kind.TUPLE:
            return self
        leaves = [at for at, _ in shape.leaves()]
        self.check(shape)
        if index not in leaves:
            reject(f"{shape} has no leaf {list(index)}")
        return self.elements[leaves.index(index)]

    def check(self, shape: Shape, num_devices: int | None = None) -> None:
        """Raises HLO027 when a value of that shape cannot be sharded so, on `num_devices` where that is given."""
        if self.kind is Kind.TUPLE:
            leaves = [leaf for _, leaf in shape.leaves()]
            if not shape.is_tuple or len(leaves) != len(self.elements):
                reject(f"{len(self.elements)} elements for the {len(leaves)} leaves of {shape}")
            for element, leaf in zip(self.elements, leaves, strict=True):
                element.check(leaf, num_devices)
            return
        if shape.is_tuple:
            for _, leaf in shape.leaves():
                self.check(leaf, num_devices)
            return
        self._check_devices(num_devices)
        if self.plain.tiles is not None and shape.is_array:
            self._tile_dims(shape)
        elif self.plain.tiles is not None:
            reject(f"{shape} cannot be tiled", f"the sharding is {self}")
        if self.named is not None and self.named.splits and len(self.named.splits) != shape.rank:
            reject(f"{len(self.named.splits)} dimensions are split", f"the shape is {shape}")

    def _check_devices(self, num_devices: int | None) -> None:
        """Raises HLO027 when a device has two tiles, or does not exist among `num_devices`."""
        plain = self.plain
        used = (plain.device,) if plain.kind is Kind.MAXIMAL else ()
        if plain.tiles is not None:  # an iota has each device up to its size once
            used = plain.tiles.listed if plain.tiles.iota is None else (plain.tiles.size - 1,)
        if len(set(used)) != len(used):
            reject("a device has two tiles", f"the sharding is {self}")
        wrong = next((d for d in used if d < 0 or (num_devices is not None and d >= num_devices)), None)
        if wrong is not None:
            reject(f"there is no device {wrong}", f"there are {num_devices}" if num_devices else None)

    def _tiles(self) -> TileAssignment:
        tiles = self.plain.tiles
        return tiles if tiles is not None else reject(f"{self} has no tiles")

    def _tile_dims(self, shape: Shape) -> tuple[int, ...]:
        tiles = self.data_dims
        if len(tiles) != shape.rank:
            reject(f"tiles along {len(tiles)} dimensions for {shape}", f"the sharding is {self}")
        return tuple(-(-d // n) for d, n in zip(shape.dims, tiles, strict=True))

    # -- variants ----------------------------------------------------------------------------------------------------
    def spread(self, shape: Shape) -> Sharding:
        """As a tuple sharding with this for every leaf, where the shape is a tuple."""
        if self.kind is Kind.TUPLE or not shape.is_tuple:
            return self
        return Sharding.tuple([self for _ in shape.leaves()])

    def with_metadata(self, *metadata: Metadata) -> Sharding:
        """With other metadata, in elements too; with none, without."""
        if self.kind is Kind.TUPLE:
            return Sharding.tuple(e.with_metadata(*metadata) for e in self.elements)
        return replace(self, metadata=metadata)

    def as_list(self) -> Sharding:
        """With devices listed, the older form of text."""
        if self.kind is Kind.TUPLE:
            return Sharding.tuple(e.as_list() for e in self.elements)
        return self if self.tiles is None else replace(self, tiles=self.tiles.as_list())

    def canonical(self) -> Sharding:
        """The form XLA gives it: subgroups merged and in order, members of replicated ones ascending, no mesh."""
        if self.kind is Kind.TUPLE:
            return Sharding.tuple(e.canonical() for e in self.elements)
        plain = self.plain
        if plain.tiles is None:
            return plain
        rank, dims = len(self.data_dims), plain.tiles.dims
        by_kind = {k: [rank + n for n, found in enumerate(plain.subgroups) if found is k] for k in SUBGROUPS}
        sizes = {k: prod(dims[d] for d in found) for k, found in by_kind.items()}
        order = [*range(rank), *(d for found in by_kind.values() for d in found)]
        kept = tuple(k for k in SUBGROUPS if sizes[k] > 1)
        tiles = plain.tiles if order == sorted(order) else plain.tiles.transpose(order)
        data = dims[:rank]
        alike = kept if kept in ((Kind.REPLICATED,), (Kind.MANUAL,)) else tuple(set(plain.subgroups))
        if len(alike) == 1 and prod(data) == 1:
            return replace(_PLAIN[alike[0]], group=self.group, metadata=self.metadata)
        tiles = tiles.reshape((*data, *(sizes[k] for k in kept)) or (1,)).canonical()
        if kept[-1:] == (Kind.REPLICATED,):
            tiles = tiles.sorted_within(len(tiles.dims) - 1)
        return replace(plain, tiles=tiles, subgroups=kept)


@lru_cache(maxsize=1 << 12)
def _lowered(named: NamedSharding) -> Sharding:
    """Axes of a mesh as tiles."""
    if named.mesh.is_maximal:
        return Sharding.maximal(named.mesh.tiles.devices[0])
    tiles, kinds = named.tiles
    if not kinds and prod(tiles.dims) == 1:
        return _PLAIN[Kind.REPLICATED]
    return Sharding(Kind.TILED, tiles=tiles, subgroups=tuple(map(Kind, kinds))).canonical()


_PLAIN = {k: Sharding(k) for k in (Kind.REPLICATED, Kind.MANUAL, Kind.UNKNOWN, Kind.UNREDUCED)}
