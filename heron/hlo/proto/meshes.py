"""Device meshes and axes, as named shardings and replica groups write them: ``mesh['x'=2,'y'=4]``, ``'y':(1)2``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from heron.hlo.proto.schema import Message
from heron.hlo.proto.words import Words
from heron.hlo.text.lexer import quote


def write_iota(w: Words, dims: Any, perm: Any) -> None:
    """``[2,4]T(1,0)``: the sizes of an iota and how it is transposed (not at all when that is left out)."""
    w.expect("[")
    sizes = w.integers("]")
    dims.extend(sizes)
    if w.next == "T":
        w.word()
        w.expect("(")
        perm.extend(w.integers(")"))
    else:
        perm.extend(range(len(sizes)))


def iota_text(dims: Iterable[int], perm: Iterable[int]) -> str:
    """Back to ``[2,4]T(1,0)``."""
    text, order = "[" + ",".join(map(str, dims)) + "]", list(perm)
    return text if order == sorted(order) else f"{text}T({','.join(map(str, order))})"


def write_mesh(w: Words, to: Message) -> None:
    """``mesh['x'=2,'y'=4]`` with ``, device_ids=(3,1,...)`` or ``, device_ids=([4,2]T(1,0))``, if there are any."""
    to.SetInParent()
    w.expect("mesh")
    w.expect("[")
    while not w.accept("]"):
        if to.axes:
            w.expect(",")
        name = w.string()
        w.expect("=")
        to.axes.add(name=name, size=w.integer())
    if w.next != "," or w.tokens[w.n + 1] != "device_ids":
        return
    w.n += 2
    w.expect("=")
    w.expect("(")
    if w.next != "[":
        to.device_ids.extend(w.integers(")"))
        return
    write_iota(w, to.iota_transform.reshape_dims, to.iota_transform.transpose_perm)
    w.expect(")")


def mesh_text(mesh: Message) -> str:
    """Back to text."""
    if not mesh.axes and mesh.device_ids:
        return f"maximal_mesh[device_id={mesh.device_ids[0]}]"
    text = "mesh[" + ",".join(f"{_quote(a.name)}={a.size}" for a in mesh.axes) + "]"
    if mesh.device_ids:
        text += f", device_ids=({','.join(map(str, mesh.device_ids))})"
    elif mesh.HasField("iota_transform"):
        iota = mesh.iota_transform
        text += f", device_ids=({iota_text(iota.reshape_dims, iota.transpose_perm)})"
    return text


def write_axis(w: Words, mesh: Message, to: Message) -> None:
    """``'x'`` or ``'x':(1)2`` into an AxisRefProto."""
    names = [a.name for a in mesh.axes]
    name = w.string()
    if name not in names:
        w.n -= 1
        w.fail("an axis of the mesh")
    to.mesh_axis_index = names.index(name)
    if w.accept(":"):
        w.expect("(")
        to.sub_axis_info.pre_size = w.integer()
        w.expect(")")
        to.sub_axis_info.size = w.integer()


def write_axes(w: Words, mesh: Message, add: Callable[[], Message]) -> bool:
    """``{'x', 'y':(1)2, ?}``; tells whether there was a question mark."""
    w.expect("{")
    is_open, first = False, True
    while not w.accept("}"):
        if not first:
            w.expect(",")
        first = False
        if w.accept("?"):
            is_open = True
        else:
            write_axis(w, mesh, add())
    return is_open


def axes_text(axes: Iterable[Message], mesh: Message, spaced: bool = True) -> str:
    """Axes without their braces."""
    parts: list[str] = []
    for axis in axes:
        index = axis.mesh_axis_index
        name = mesh.axes[index].name if 0 <= index < len(mesh.axes) else f"?{index}"
        sub = axis.sub_axis_info if axis.HasField("sub_axis_info") else None
        parts.append(_quote(name) + (f":({sub.pre_size}){sub.size}" if sub is not None else ""))
    return (", " if spaced else ",").join(parts)


def _quote(name: str) -> str:
    return "'" + quote(name)[1:-1] + "'"
