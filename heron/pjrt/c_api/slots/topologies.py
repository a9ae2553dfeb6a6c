"""Topologies: devices described without a client."""

from __future__ import annotations

import ctypes
import os
from typing import Any

from heron import targets
from heron.errors import HeronError
from heron.hlo.ir.layout import layout
from heron.hlo.ir.shape import array, row_major
from heron.pjrt import element_types
from heron.pjrt.c_api import handles
from heron.pjrt.c_api.handles import DescriptionCell, Handle, TopologyCell
from heron.pjrt.c_api.slot import FREE, give_bytes, named_values, read_named_values, slot
from heron.pjrt.device import MEMORY_KINDS, PLATFORM, Topology, platform_version

#: environment variables that say what devices there are
TARGET, DEVICES = "HERON_TARGET", "HERON_DEVICES"
#: devices share the machine; more of them are a slip of the finger
_MOST = 4096


def asked(options: dict[str, Any]) -> tuple[str, int, str]:
    """The target, the number of devices and the platform's name that options or the environment ask for.

    Raises PJRT011.
    """
    target = options.get("target") or os.environ.get(TARGET) or "cpu"
    count = options.get("devices") or os.environ.get(DEVICES) or 1
    if not str(count).isdecimal() or not 1 <= int(count) <= _MOST:
        raise HeronError("PJRT011", f"a client has 1 to {_MOST} devices, not {count!r}", hint=f"{DEVICES}=2")
    return str(target), int(count), str(options.get("platform") or PLATFORM)


def describe(topology: Topology) -> list[Handle]:
    """Handles of the descriptions of a topology's devices."""
    made = []
    for n in topology.device_ids:
        kind, kind_at, kind_size = handles.text(topology.device_kind)
        text, text_at, text_size = handles.text(f"{topology.platform}:{n}")
        # as JAX's own devices are printed
        printed, printed_at, printed_size = handles.text(f"{topology.platform.capitalize()}Device(id={n})")
        keep, attributes, count = named_values({"target": topology.target})
        texts = (kind_at, kind_size, text_at, text_size, printed_at, printed_size)
        cell = DescriptionCell(n, topology.process_of(n), *texts, attributes, count)
        made.append(handles.new(topology, cell, kind, text, printed, keep))
    return made


def give(topology: Topology, version: str, descriptions: list[Handle]) -> Handle:
    """A handle of a topology."""
    name, name_at, name_size = handles.text(topology.platform)
    text, text_at, text_size = handles.text(version)
    array, array_at = handles.pointers(d.address for d in descriptions)
    keep, attributes, count = named_values({"target": topology.target})
    fingerprint = ctypes.c_int64(topology.fingerprint).value
    cell = TopologyCell(
        *(name_at, name_size, text_at, text_size, fingerprint, array_at, len(descriptions), attributes, count)
    )
    return handles.new(topology, cell, name, text, array, keep, descriptions)


@slot("PJRT_TopologyDescription_Create")
def create(args: Any) -> None:
    target, count, platform = asked(read_named_values(args.create_options, args.num_options))
    topology = Topology(targets.get(target).name, count, platform=platform)
    args.topology = give(topology, platform_version(topology.target), describe(topology)).address


@slot("PJRT_TopologyDescription_Destroy")
def destroy(args: Any) -> None:
    handles.free(args.topology)


@slot("PJRT_TopologyDescription_Serialize")
def serialize(args: Any) -> None:
    data = handles.get(args.topology).serialize()
    args.serialized_bytes = args.serialized_topology = give_bytes(data)
    args.serialized_bytes_size, args.serialized_topology_deleter = len(data), FREE


@slot("PJRT_TopologyDescription_Deserialize")
def deserialize(args: Any) -> None:
    topology = Topology.deserialize(handles.read_text(args.serialized_topology, args.serialized_topology_size))
    args.topology = give(topology, platform_version(topology.target), describe(topology)).address


@slot("PJRT_TopologyDescription_GetMemorySpaceKindIds")
def memory_kinds(args: Any) -> None:
    args.memory_space_kind_ids, args.num_memory_space_kind_ids = _KIND_IDS[1], len(MEMORY_KINDS)


_KIND_IDS = handles.array(ctypes.c_int32, range(len(MEMORY_KINDS)))


@slot("PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace")
def canonical_shape(args: Any) -> None:
    """The shape as every memory has it: in the layout that is given, else row-major; the bytes of a ShapeProto."""
    from heron.hlo.proto.schema import MESSAGES
    from heron.hlo.proto.shapes import ShapeWriter

    dims = handles.read_integers(ctypes.c_int64, args.dims, args.num_dims)
    order = handles.minor_to_major(args.layout)
    kind = element_types.of_number(args.element_type)
    shape = row_major(kind, *dims) if order is None else array(kind, dims, layout(order))
    proto = MESSAGES["ShapeProto"]()
    ShapeWriter().write(shape, proto)
    data = proto.SerializeToString()
    args.serialized_shape, args.serialized_shape_size = give_bytes(data), len(data)
    args.serialized_shape_deleter = FREE
