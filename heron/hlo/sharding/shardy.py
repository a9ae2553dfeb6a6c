"""Shardy's text of meshes and shardings, which programs carry as attributes named ``xla.sdy.…``.

meshes = read_meshes('{mesh = #sdy.mesh<["x"=2, "y"=4]>}')
read_sharding('#sdy.sharding<@mesh, [{"x", ?}, {"y":(1)2}p1], replicated={"y":(2)2}>', meshes)
# {mesh['x'=2,'y'=4], [{'x', ?}, {'y':(1)2}p1], replicated={'y':(2)2}}
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from heron.hlo.ir.words import Words
from heron.hlo.sharding.mesh import Axis, Mesh, NamedSharding, Split
from heron.hlo.sharding.text import read_axes, read_splits
from heron.hlo.sharding.value import Sharding

Meshes = Mapping[str, Mesh]
_REST = ("replicated", "unreduced")


def read_meshes(text: str) -> dict[str, Mesh]:
    """Meshes by name: ``{mesh = #sdy.mesh<["x"=2], device_ids=[1, 0]>}``. Raises HLO027."""
    w = Words(text, "xla.sdy.meshes", "HLO027")
    found: dict[str, Mesh] = {}
    w.expect("{")
    while not w.accept("}"):
        if found:
            w.expect(",")
        name = _name(w)
        w.expect("=")
        _dialect(w, "sdy.mesh")
        found[name] = _mesh(w)
    w.end()
    return found


def read_sharding(text: str, meshes: Meshes) -> Sharding:
    """``#sdy.sharding<@mesh, [{"x"}, {?}]>``. Raises HLO027, for an unknown mesh too."""
    w = Words(text, "xla.sdy.sharding", "HLO027")
    found = _sharding(w, meshes)
    w.end()
    return found


def read_shardings(text: str, meshes: Meshes) -> list[Sharding]:
    """The shardings of several values: ``#sdy.sharding_per_value<[<@mesh, [{"x"}]>]>``; of one, too. Raises HLO027."""
    w = Words(text, "xla.sdy.sharding", "HLO027")
    if w.tokens[w.n : w.n + 2] == ["#", "sdy.sharding"]:
        return [read_sharding(text, meshes)]
    _dialect(w, "sdy.sharding_per_value")
    w.expect("<")
    w.expect("[")
    found: list[Sharding] = []
    while not w.accept("]"):
        if found:
            w.expect(",")
        found.append(_sharding(w, meshes))
    w.expect(">")
    w.end()
    return found


@lru_cache(1024)
def read_manual_axes(text: str) -> tuple[str, ...]:
    """The names in ``#sdy<manual_axes{"x", "y"}>``. Raises HLO027."""
    w = Words(text, "xla.sdy.manual_axes", "HLO027")
    for token in ("#", "sdy", "<", "manual_axes", "{"):
        w.expect(token)
    found: list[str] = []
    while not w.accept("}"):
        if found:
            w.expect(",")
        found.append(w.string())
    w.expect(">")
    w.end()
    return tuple(found)


def read_group(text: str) -> int:
    """The number in ``3 : i64``. Raises HLO027."""
    w = Words(text, "xla.sdy.sharding_group_id", "HLO027")
    found = w.integer()
    if w.accept(":"):
        w.word()
    w.end()
    return found


def _dialect(w: Words, name: str) -> None:
    w.expect("#")
    w.expect(name)


def _name(w: Words) -> str:
    return w.string() if w.next[:1] in ('"', "'") else w.word()


def _mesh(w: Words) -> Mesh:
    """``<["x"=2, "y"=4], device_ids=[…]>``."""
    w.expect("<")
    w.expect("[")
    axes: list[tuple[str, int]] = []
    while not w.accept("]"):
        if axes:
            w.expect(",")
        name = w.string()
        w.expect("=")
        axes.append((name, w.integer()))
    devices: tuple[int, ...] | None = None
    if w.accept(","):
        for token in ("device_ids", "=", "["):
            w.expect(token)
        devices = tuple(w.integers("]"))
    w.expect(">")
    return Mesh(tuple(axes), devices)


def _sharding(w: Words, meshes: Meshes) -> Sharding:
    if w.next == "#":
        _dialect(w, "sdy.sharding")
    w.expect("<")
    if w.accept("@"):
        at = w.n
        name = _name(w)
        if name not in meshes:
            w.n = at
            w.fail(f"a mesh ({', '.join(meshes) or 'there is none'})")
        mesh = meshes[name]
    else:
        w.expect("mesh")
        mesh = _mesh(w)
    w.expect(",")
    w.expect("[")
    splits: tuple[Split, ...] = read_splits(w, mesh)
    rest: dict[str, tuple[Axis, ...]] = {}
    while w.accept(","):
        if w.next not in _REST:
            w.fail(" or ".join(_REST))
        kind = w.word()
        w.expect("=")
        rest[kind] = read_axes(w, mesh)
    w.expect(">")
    if mesh.is_maximal:
        return Sharding.maximal(mesh.tiles.devices[0])
    return Sharding.of_axes(NamedSharding(mesh, splits, **rest))
