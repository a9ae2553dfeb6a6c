"""Replica groups ↔ the three lists HLO has for them: one by one, as an iota, as axes of a mesh."""

from __future__ import annotations

from collections.abc import Iterable

from heron.hlo.ir.words import Words
from heron.hlo.proto.meshes import read_axes, read_iota, read_mesh, write_axes, write_iota, write_mesh
from heron.hlo.proto.schema import Message
from heron.hlo.sharding import text as sharding_text


def write_groups(text: str, to: Message) -> None:
    """``{{0,1},{2,3}}``, ``[2,4]<=[8]`` or ``mesh['x'=2] {'x'}`` into an HloInstructionProto. Raises PROTO006."""
    w = Words(text, "replica_groups")
    if w.next == "mesh":
        found, mesh = to.mesh_axes_replica_group_list, sharding_text.read_mesh(w)
        write_mesh(mesh, found.mesh)
        write_axes(sharding_text.read_axes(w, mesh), found.axes.add)
    elif w.next == "[":
        _write_iota_groups(w, to.iota_collective_device_list)
    else:
        to.collective_device_list.SetInParent()
        w.expect("{")
        while not w.accept("}"):
            if to.collective_device_list.replica_groups:
                w.expect(",")
            w.expect("{")
            to.collective_device_list.replica_groups.add(replica_ids=w.integers("}"))
    w.end()


def _write_iota_groups(w: Words, to: Message) -> None:
    w.expect("[")
    to.num_replica_groups = w.integer()
    w.expect(",")
    to.num_devices_per_group = w.integer()
    w.expect("]")
    w.expect("<=")
    write_iota(sharding_text.read_iota(w), to.iota_reshape_dims, to.iota_transpose_perm)


def read_groups(proto: Message) -> str:
    """The text, whichever field holds the groups."""
    if proto.HasField("iota_collective_device_list"):
        iota = proto.iota_collective_device_list
        sizes = f"[{iota.num_replica_groups},{iota.num_devices_per_group}]"
        return f"{sizes}<={read_iota(iota.iota_reshape_dims, iota.iota_transpose_perm)}"
    if proto.HasField("mesh_axes_replica_group_list"):
        found = proto.mesh_axes_replica_group_list
        mesh = read_mesh(found.mesh)
        return f"{mesh} {{{','.join(a.text(mesh) for a in read_axes(found.axes))}}}"
    if proto.HasField("collective_device_list"):
        return _lists(proto.collective_device_list.replica_groups)
    return _lists(proto.replica_groups)  # where programs of older versions have them


def _lists(groups: Iterable[Message]) -> str:
    return "{" + ",".join("{" + ",".join(map(str, g.replica_ids)) + "}" for g in groups) + "}"
