"""Sharding text in: tiles as lists and as iotas, maximal, manual, tuples, groups, named axes of a mesh."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any, NoReturn, TypeVar

from heron.errors import HeronError
from heron.hlo.ir.metadata import Metadata
from heron.hlo.ir.quoting import quote
from heron.hlo.ir.words import Words
from heron.hlo.sharding.mesh import Axis, Mesh, NamedSharding, Split
from heron.hlo.sharding.tiles import Iota, TileAssignment
from heron.hlo.sharding.value import SUBGROUPS, Kind, ShardGroup, Sharding

_PLAIN = ("replicated", "maximal", "devices", "manual", "unknown", "unreduced")
_GROUPS = ("shard_as", "shard_like")
_STRINGS = ("op_type", "op_name", "source_file")
_NUMBERS = ("source_line", "source_end_line", "source_column", "source_end_column", "stack_frame_id")
_EXTRA_STRINGS = ("deduplicated_name", "scheduling_name")
_PRIORITY = re.compile(r"p(\d{1,9})")
_T = TypeVar("_T")


@lru_cache(4096)
def parse(text: str) -> Sharding:
    """The sharding XLA's text means; the same object for the same text. Raises HLO027."""
    w = Words(text, "sharding", "HLO027")
    try:
        found = _sharding(w, inside=False)
    except HeronError as error:
        raise error.located(text[:200]) from None
    w.end()
    return found


def _sharding(w: Words, inside: bool) -> Sharding:
    w.expect("{")
    if w.next in ("{", "}"):
        if inside:
            w.fail("an element for a leaf, none of which is a tuple")
        return Sharding.tuple(_until(w, "}", lambda: _sharding(w, inside=True)))
    return _named(w) if w.next in ("mesh", "maximal_mesh") else _tiled(w)


def _until(w: Words, close: str, read: Callable[[], _T]) -> list[_T]:
    """Things separated by commas, up to and including `close`."""
    found: list[_T] = []
    while not w.accept(close):
        if found:
            w.expect(",")
        found.append(read())
    return found


def _tiled(w: Words) -> Sharding:
    if w.next not in _PLAIN:
        w.fail("replicated, maximal, manual, unknown, unreduced, devices= or a mesh")
    fields: dict[str, Any] = {"kind": Kind(w.word())}
    if fields["kind"] is Kind.MAXIMAL:
        w.expect("device")
        w.expect("=")
        fields["device"] = w.integer()
    elif fields["kind"] is Kind.TILED:
        w.expect("=")
        fields["tiles"] = _tiles(w)
    while not w.accept("}"):
        name = w.next
        if name in _GROUPS:
            fields["group"] = _group(w)
        elif name == "metadata":
            w.word()
            w.expect("=")
            fields["metadata"] = _metadata_list(w)
        elif name == "last_tile_dim_replicate" and "tiles" in fields:
            w.word()
            fields["subgroups"] = (*fields.get("subgroups", ()), Kind.REPLICATED)
        elif name == "last_tile_dims" and "tiles" in fields:
            w.word()
            w.expect("=")
            w.expect("{")
            fields["subgroups"] = tuple(_until(w, "}", lambda: _subgroup(w)))
        else:
            w.fail("'}'")
    return Sharding(**fields)


def _group(w: Words) -> ShardGroup:
    """``shard_as 3``."""
    return ShardGroup(exactly=w.word() == "shard_as", number=w.integer())


def _subgroup(w: Words) -> Kind:
    if w.next not in [k.value for k in SUBGROUPS]:
        w.fail(", ".join(k.value for k in SUBGROUPS))
    return Kind(w.word())


def _tiles(w: Words) -> TileAssignment:
    w.expect("[")
    dims = tuple(w.integers("]"))
    if w.accept("<="):
        return TileAssignment(dims, read_iota(w))
    devices = [w.integer()]
    while w.accept(","):
        devices.append(w.integer())
    return TileAssignment(dims, None, tuple(devices))


def read_iota(w: Words) -> Iota:
    """``[2,4]T(1,0)``."""
    w.expect("[")
    dims = w.integers("]")
    if not w.accept("T"):
        return Iota.of(dims)
    w.expect("(")
    return Iota.of(dims, w.integers(")"))


# -- named axes ------------------------------------------------------------------------------------------------------
def _named(w: Words) -> Sharding:
    fields: dict[str, Any] = {"mesh": read_mesh(w)}
    metadata: tuple[Metadata, ...] = ()
    comma = w.accept(",") or w.next not in ("}", *_GROUPS)  # none is needed behind the mesh
    while comma or w.accept(","):
        comma, mesh = False, fields["mesh"]
        if w.accept("["):
            fields["splits"] = read_splits(w, mesh)
            continue
        name = w.next
        if name not in ("replicated", "unreduced", "manual", "metadata"):
            w.fail("dimensions, axes or metadata")
        w.word()
        if w.next != "=":
            if name in ("unreduced", "manual"):
                fields[name] = tuple(map(Axis, range(len(mesh.axes))))
            continue
        w.expect("=")
        if name == "metadata":
            metadata = _metadata_list(w)
        else:
            fields[name] = read_axes(w, mesh)
    found = Sharding.of_axes(NamedSharding(**fields))
    if w.next in _GROUPS:
        found = replace(found, group=_group(w))
    w.expect("}")
    return found.with_metadata(*metadata) if metadata else found


def read_mesh(w: Words) -> Mesh:
    """``mesh['x'=2]``, maybe with ``, device_ids=(3,1)`` or ``([4,2]T(1,0))``; ``maximal_mesh[device_id=5]``."""
    if w.accept("maximal_mesh"):
        for token in ("[", "device_id", "="):
            w.expect(token)
        device = w.integer()
        w.expect("]")
        return Mesh((), (device,))
    w.expect("mesh")
    w.expect("[")
    axes = tuple(_until(w, "]", lambda: _mesh_axis(w)))
    if w.next != "," or w.tokens[w.n + 1] != "device_ids":
        return Mesh(axes)
    w.n += 2
    w.expect("=")
    w.expect("(")
    if w.next != "[":
        return Mesh(axes, tuple(w.integers(")")))
    iota = read_iota(w)
    w.expect(")")
    return Mesh(axes, iota)


def _mesh_axis(w: Words) -> tuple[str, int]:
    name = w.string()
    w.expect("=")
    return name, w.integer()


def read_splits(w: Words, mesh: Mesh) -> tuple[Split, ...]:
    """``{'x'}, {'y', ?}p1]``, behind the opening bracket."""
    return tuple(_until(w, "]", lambda: _split(w, mesh)))


def _split(w: Words, mesh: Mesh) -> Split:
    w.expect("{")
    found = _until(w, "}", lambda: None if w.accept("?") else _axis(w, mesh))
    axes = tuple(a for a in found if a is not None)
    if None in found[:-1]:
        w.fail("'?' at the end only")
    priority = _PRIORITY.fullmatch(w.next)
    if priority is not None:
        w.word()
    return Split(axes, len(axes) < len(found), int(priority[1]) if priority is not None else 0)


def read_axes(w: Words, mesh: Mesh) -> tuple[Axis, ...]:
    """``{'x', 'y':(1)2}``."""
    w.expect("{")
    return tuple(_until(w, "}", lambda: _axis(w, mesh)))


def _axis(w: Words, mesh: Mesh) -> Axis:
    names = [name for name, _ in mesh.axes]
    name = w.string()
    if name.isdecimal() and name not in names and int(name) < len(names):
        name = names[int(name)]
    if name not in names:
        w.n -= 1
        w.fail(f"an axis of the mesh ({', '.join(names) or 'it has none'})")
    if not w.accept(":"):
        return Axis(names.index(name))
    w.expect("(")
    before = w.integer()
    w.expect(")")
    return Axis(names.index(name), before, w.integer())


# -- metadata --------------------------------------------------------------------------------------------------------
def _metadata_list(w: Words) -> tuple[Metadata, ...]:
    """``{...}`` or ``{{...}, {...}}``: one or several."""
    if w.tokens[w.n + 1] != "{":
        return (_metadata(w),)
    w.expect("{")
    return tuple(_until(w, "}", lambda: _metadata(w)))


def _metadata(w: Words) -> Metadata:
    fields: dict[str, Any] = {}
    extra: list[tuple[str, str]] = []
    w.expect("{")
    while not w.accept("}"):
        name = w.word()
        w.expect("=")
        if name in _STRINGS:
            fields[name] = w.string()
        elif name in _NUMBERS:
            fields[name] = w.integer()
        elif name in _EXTRA_STRINGS:
            extra.append((name, quote(w.string())))
        elif name == "profile_type":
            w.expect("{")
            extra.append((name, "{" + ",".join(map(str, w.integers("}"))) + "}"))
        else:
            _unknown(w)
    return Metadata(**fields, extra=tuple(extra))


def _unknown(w: Words) -> NoReturn:
    w.n -= 2
    w.fail("a field of metadata")
