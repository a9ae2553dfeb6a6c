"""Sharding text ↔ OpSharding: tiles as lists and as iotas, maximal, manual, tuples, groups, named axes of a mesh."""

from __future__ import annotations

from heron.errors import HeronError
from heron.hlo.proto.meshes import axes_text, iota_text, mesh_text, write_axes, write_iota, write_mesh
from heron.hlo.proto.metadata import read_metadata, write_metadata_list
from heron.hlo.proto.schema import Message
from heron.hlo.proto.words import Words
from heron.hlo.text.common import print_metadata

_TYPES = ("replicated", "maximal", "tuple", "devices", "manual", "unknown", "unreduced")
_REPLICATED, _MAXIMAL, _TUPLE, _OTHER = range(4)
_GROUPS = ("shard_as", "shard_like")
_NAMED_AXES = ("replicated", "unreduced", "manual")
_DEPTH = 60


def write_sharding(text: str, to: Message) -> None:
    """Fill an empty OpSharding from XLA's text. Raises PROTO006."""
    w = Words(text, "sharding")
    _write(w, to)
    w.end()


def _write(w: Words, to: Message) -> None:
    to.SetInParent()
    w.enter()
    w.expect("{")
    if w.next in ("{", "}"):
        _write_tuple(w, to)
    elif w.next in ("mesh", "maximal_mesh"):
        _write_named(w, to.named_sharding)
    else:
        _write_plain(w, to)
    w.leave()


def _write_tuple(w: Words, to: Message) -> None:
    to.type = _TUPLE
    while not w.accept("}"):
        if to.tuple_shardings:
            w.expect(",")
        _write(w, to.tuple_shardings.add())


def _write_plain(w: Words, to: Message) -> None:
    kind = w.word()
    if kind not in _TYPES or kind == "tuple":
        w.n -= 1
        w.fail("replicated, maximal, manual, unknown, unreduced, devices= or a mesh")
    to.type = _TYPES.index(kind)
    if to.type == _MAXIMAL:
        w.expect("device")
        w.expect("=")
        to.tile_assignment_devices.append(w.integer())
    elif to.type == _OTHER:
        w.expect("=")
        _write_tiles(w, to)
    while not w.accept("}"):
        name = w.word()
        if name in _GROUPS:
            to.is_shard_group, to.shard_group_type = True, _GROUPS.index(name)
            to.shard_group_id = w.integer()
        elif name == "metadata":
            w.expect("=")
            write_metadata_list(w, to.metadata.add)
        elif name == "last_tile_dim_replicate":
            to.replicate_on_last_tile_dim = True
        elif name == "last_tile_dims":
            _write_last_dims(w, to)
        else:
            w.n -= 1
            w.fail("'}'")


def _write_tiles(w: Words, to: Message) -> None:
    w.expect("[")
    to.tile_assignment_dimensions.extend(w.integers("]"))
    if w.accept("<="):
        write_iota(w, to.iota_reshape_dims, to.iota_transpose_perm)
        return
    to.tile_assignment_devices.append(w.integer())
    while w.accept(","):
        to.tile_assignment_devices.append(w.integer())


def _write_last_dims(w: Words, to: Message) -> None:
    w.expect("=")
    w.expect("{")
    while not w.accept("}"):
        if to.last_tile_dims:
            w.expect(",")
        name = w.word()
        if name not in _TYPES:
            w.fail("a kind of sharding")
        to.last_tile_dims.append(_TYPES.index(name))


def _write_named(w: Words, to: Message) -> None:
    if w.accept("maximal_mesh"):
        for token in ("[", "device_id", "="):
            w.expect(token)
        to.mesh.device_ids.append(w.integer())
        w.expect("]")
    else:
        write_mesh(w, to.mesh)
    while w.accept(","):
        if w.accept("["):
            while not w.accept("]"):
                if to.dim_shardings:
                    w.expect(",")
                dim = to.dim_shardings.add()
                dim.is_closed = not write_axes(w, to.mesh, dim.axes.add)
            continue
        name = w.word()
        if name == "replicated" and w.next == "}":
            break
        w.expect("=")
        if name in _NAMED_AXES:
            write_axes(w, to.mesh, getattr(to, name + "_axes").add)
        elif name == "metadata":
            write_metadata_list(w, to.metadata.add)
        else:
            w.fail("axes or metadata")
    w.expect("}")


# -- reading ---------------------------------------------------------------------------------------------------------
def read_sharding(proto: Message, depth: int = 0) -> str:
    """XLA's text of an OpSharding. Raises PROTO003 for kinds nobody knows."""
    if depth > _DEPTH:
        raise HeronError("PROTO003", "a sharding is nested too deeply", why=f"the limit is {_DEPTH} levels")
    if proto.HasField("named_sharding"):
        return "{" + _named_text(proto.named_sharding) + "}"
    if not 0 <= proto.type < len(_TYPES):
        raise HeronError("PROTO003", f"sharding type {proto.type} is unknown")
    if proto.type == _TUPLE:
        return "{" + ", ".join(read_sharding(s, depth + 1) for s in proto.tuple_shardings) + "}"
    text = _TYPES[proto.type]
    if proto.type == _MAXIMAL:
        text += f" device={proto.tile_assignment_devices[0] if proto.tile_assignment_devices else 0}"
    elif proto.type == _OTHER:
        text += "=" + _tiles_text(proto)
    if proto.is_shard_group:
        group = proto.shard_group_type
        text += f" {_GROUPS[group] if 0 <= group < len(_GROUPS) else _GROUPS[0]} {proto.shard_group_id}"
    if proto.metadata:
        text += " metadata=" + _metadata_text(proto.metadata, several_braces=False)
    return "{" + text + "}"


def _tiles_text(proto: Message) -> str:
    text = "[" + ",".join(map(str, proto.tile_assignment_dimensions)) + "]"
    if proto.iota_reshape_dims:
        text += "<=" + iota_text(proto.iota_reshape_dims, proto.iota_transpose_perm)
    else:
        text += ",".join(map(str, proto.tile_assignment_devices))
    if proto.replicate_on_last_tile_dim:
        text += " last_tile_dim_replicate"
    if proto.last_tile_dims:
        names = [_TYPES[d] if 0 <= d < len(_TYPES) else str(d) for d in proto.last_tile_dims]
        text += " last_tile_dims={" + ", ".join(names) + "}"
    return text


def _named_text(proto: Message) -> str:
    mesh = proto.mesh
    parts = [mesh_text(mesh)]
    axes = [(name, getattr(proto, name + "_axes")) for name in _NAMED_AXES]
    dims = [
        "{" + axes_text(d.axes, mesh) + ("" if d.is_closed else ", ?" if d.axes else "?") + "}"
        for d in proto.dim_shardings
    ]
    if dims or any(found for _, found in axes):
        parts.append("[" + ", ".join(dims) + "]")
    elif mesh.axes or not mesh.device_ids:
        parts.append("replicated")
    parts += [f"{name}={{{axes_text(found, mesh)}}}" for name, found in axes if found]
    if proto.metadata:
        parts.append("metadata=" + _metadata_text(proto.metadata, several_braces=True))
    return ", ".join(parts)


def _metadata_text(several: list[Message], several_braces: bool) -> str:
    texts = [print_metadata(found) if (found := read_metadata(m)) is not None else "{}" for m in several]
    return texts[0] if len(texts) == 1 and not several_braces else "{" + ", ".join(texts) + "}"
