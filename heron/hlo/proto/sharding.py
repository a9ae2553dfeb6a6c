"""Sharding ↔ OpSharding."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from heron.errors import HeronError
from heron.hlo.ir.metadata import Metadata
from heron.hlo.proto.meshes import read_axes, read_iota, read_mesh, write_axes, write_iota, write_mesh
from heron.hlo.proto.metadata import read_metadata, write_metadata
from heron.hlo.proto.schema import Message
from heron.hlo.sharding import Kind, NamedSharding, ShardGroup, Sharding, Split, TileAssignment, parse

_KINDS = tuple(Kind)
_NAMED_AXES = ("replicated", "unreduced", "manual")
_SHARD_AS, _SHARD_LIKE = range(2)


def write_sharding(text: str, to: Message) -> None:
    """Fill an empty OpSharding from XLA's text. Raises HLO027."""
    _write(parse(text), to)


def _write(s: Sharding, to: Message) -> None:
    to.SetInParent()
    if s.group is not None:
        to.is_shard_group, to.shard_group_id = True, s.group.number
        to.shard_group_type = _SHARD_AS if s.group.exactly else _SHARD_LIKE
    if s.named is not None:
        _write_named(s.named, s.metadata, to.named_sharding)
        return
    to.type = _KINDS.index(s.kind)
    for element in s.elements:
        _write(element, to.tuple_shardings.add())
    if s.kind is Kind.MAXIMAL:
        to.tile_assignment_devices.append(s.device)
    if s.tiles is not None:
        to.tile_assignment_dimensions.extend(s.tiles.dims)
        to.tile_assignment_devices.extend(s.tiles.listed)
        if s.tiles.iota is not None:
            write_iota(s.tiles.iota, to.iota_reshape_dims, to.iota_transpose_perm)
    if s.subgroups == (Kind.REPLICATED,):
        to.replicate_on_last_tile_dim = True
    else:
        to.last_tile_dims.extend(map(_KINDS.index, s.subgroups))
    _write_metadata(s.metadata, to)


def _write_named(named: NamedSharding, metadata: Iterable[Metadata], to: Message) -> None:
    write_mesh(named.mesh, to.mesh)
    for split in named.splits:
        dim = to.dim_shardings.add()
        dim.is_closed = not split.is_open
        write_axes(split.axes, dim.axes.add)
    for name in _NAMED_AXES:
        write_axes(getattr(named, name), getattr(to, f"{name}_axes").add)
    _write_metadata(metadata, to)


def _write_metadata(metadata: Iterable[Metadata], to: Message) -> None:
    for m in metadata:
        write_metadata(m, to.metadata.add())


# -- reading ---------------------------------------------------------------------------------------------------------
def read_sharding(proto: Message) -> str:
    """XLA's text of an OpSharding. Raises PROTO003 for what is none."""
    try:
        return str(_read(proto))
    except HeronError as error:
        raise HeronError("PROTO003", error.what, why=error.why) from None


def _read(proto: Message) -> Sharding:
    group = None
    if proto.is_shard_group:
        group = ShardGroup(proto.shard_group_id, proto.shard_group_type != _SHARD_LIKE)
    if proto.HasField("named_sharding"):
        found = _read_named(proto.named_sharding)
        return found if group is None else replace(found, group=group)
    kind = _kind(proto.type)
    metadata = _read_metadata(proto)
    if kind is Kind.TUPLE:
        if any(p.type == _KINDS.index(Kind.TUPLE) for p in proto.tuple_shardings):
            raise HeronError("PROTO003", "an element of a tuple sharding is a tuple")
        return Sharding.tuple(map(_read, proto.tuple_shardings))
    if kind is Kind.MAXIMAL:
        device = proto.tile_assignment_devices[0] if proto.tile_assignment_devices else 0
        return Sharding(kind, device, group=group, metadata=metadata)
    if kind is not Kind.TILED:
        return Sharding(kind, group=group, metadata=metadata)
    subgroups = tuple(map(_kind, proto.last_tile_dims))
    if proto.replicate_on_last_tile_dim:
        subgroups += (Kind.REPLICATED,)
    return Sharding(kind, tiles=_read_tiles(proto), subgroups=subgroups, group=group, metadata=metadata)


def _kind(number: int) -> Kind:
    if not 0 <= number < len(_KINDS):
        raise HeronError("PROTO003", f"sharding type {number} is unknown")
    return _KINDS[number]


def _read_tiles(proto: Message) -> TileAssignment:
    dims = tuple(proto.tile_assignment_dimensions)
    if proto.iota_reshape_dims:
        return TileAssignment(dims, read_iota(proto.iota_reshape_dims, proto.iota_transpose_perm))
    return TileAssignment(dims, None, tuple(proto.tile_assignment_devices))


def _read_named(proto: Message) -> Sharding:
    splits = tuple(Split(read_axes(d.axes), not d.is_closed) for d in proto.dim_shardings)
    others = {name: read_axes(getattr(proto, f"{name}_axes")) for name in _NAMED_AXES}
    return Sharding.of_axes(NamedSharding(read_mesh(proto.mesh), splits, **others)).with_metadata(
        *_read_metadata(proto)
    )


def _read_metadata(proto: Message) -> tuple[Metadata, ...]:
    return tuple(read_metadata(m) or Metadata() for m in proto.metadata)
