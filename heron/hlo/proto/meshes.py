"""Device meshes, their axes and iotas ↔ MeshProto, AxisRefProto and lists of dimensions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from heron.hlo.proto.schema import Message
from heron.hlo.sharding import Axis, Iota, Mesh


def write_iota(iota: Iota, dims: Any, perm: Any) -> None:
    """Sizes and permutation into two repeated fields."""
    dims.extend(iota.dims)
    perm.extend(iota.perm)


def read_iota(dims: Iterable[int], perm: Iterable[int]) -> Iota:
    """Back from the two fields; not permuted where the second is empty. Raises HLO027."""
    return Iota.of(dims, list(perm) or None)


def write_mesh(mesh: Mesh, to: Message) -> None:
    """Fill an empty MeshProto."""
    to.SetInParent()
    for name, size in mesh.axes:
        to.axes.add(name=name, size=size)
    if isinstance(mesh.devices, Iota):
        write_iota(mesh.devices, to.iota_transform.reshape_dims, to.iota_transform.transpose_perm)
    elif mesh.devices is not None:
        to.device_ids.extend(mesh.devices)


def read_mesh(mesh: Message) -> Mesh:
    """Back from the message. Raises HLO027."""
    axes = tuple((a.name, a.size) for a in mesh.axes)
    if mesh.device_ids:
        return Mesh(axes, tuple(mesh.device_ids))
    iota = mesh.iota_transform
    return Mesh(axes, read_iota(iota.reshape_dims, iota.transpose_perm) if mesh.HasField("iota_transform") else None)


def write_axes(axes: Iterable[Axis], add: Callable[[], Message]) -> None:
    """Each into an AxisRefProto that `add` makes."""
    for axis in axes:
        to = add()
        to.mesh_axis_index = axis.number
        if axis.size is not None:
            to.sub_axis_info.pre_size, to.sub_axis_info.size = axis.before, axis.size


def read_axes(axes: Iterable[Message]) -> tuple[Axis, ...]:
    """Back from the messages."""
    return tuple(
        Axis(a.mesh_axis_index, a.sub_axis_info.pre_size, a.sub_axis_info.size)
        if a.HasField("sub_axis_info")
        else Axis(a.mesh_axis_index)
        for a in axes
    )
