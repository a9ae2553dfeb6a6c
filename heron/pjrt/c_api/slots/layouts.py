"""The extension for layouts: all buffers lie row-major. A layout's handle is its text, ``{1,0}``, which is also its
serialised form."""

from __future__ import annotations

import ctypes
from typing import Any

from heron.pjrt.c_api import handles, native
from heron.pjrt.c_api.slots import FREE, give_bytes, slot

_PREFIX = "PJRT_Layouts"


def row_major(rank: int) -> str:
    """The text of the layout of an array of that rank."""
    return "{" + ",".join(map(str, reversed(range(rank)))) + "}"


@slot(f"{_PREFIX}_MemoryLayout_Destroy")
def destroy(args: Any) -> None:
    if args.layout not in _SHARED:
        native.call_c(None, FREE, (ctypes.c_void_p, args.layout))


@slot(f"{_PREFIX}_MemoryLayout_Serialize")
def serialize(args: Any) -> None:
    data = ctypes.string_at(args.layout)
    args.serialized_bytes = args.serialized_layout = give_bytes(data)
    args.serialized_bytes_size, args.serialized_layout_deleter = len(data), FREE


@slot(f"{_PREFIX}_PJRT_Client_GetDefaultLayout")
def default_of_client(args: Any) -> None:
    args.layout = give_bytes(row_major(args.num_dims).encode())


@slot(f"{_PREFIX}_PJRT_Topology_GetDefaultLayout")
def default_of_topology(args: Any) -> None:
    args.layout = give_bytes(row_major(args.num_dims).encode())


@slot(f"{_PREFIX}_PJRT_Buffer_MemoryLayout")
def of_buffer(args: Any) -> None:
    args.layout = give_bytes(row_major(len(handles.get(args.buffer).dims)).encode())


@slot(f"{_PREFIX}_PJRT_Executable_GetOutputLayouts")
def of_outputs(args: Any) -> None:
    shapes = handles.get(args.executable).outputs
    args.num_outputs, args.layouts = len(shapes), _of_shapes(args.executable, shapes)


@slot(f"{_PREFIX}_PJRT_Executable_GetParameterLayouts")
def of_parameters(args: Any) -> None:
    shapes = handles.get(args.executable).parameters
    args.num_parameters, args.layouts = len(shapes), _of_shapes(args.executable, shapes)


#: layouts by rank that live as long as the process, with the text they are
_BY_RANK: dict[int, Any] = {}
_SHARED: set[int] = set()


def _of_shapes(executable: int, shapes: Any) -> int:
    array, address = handles.pointers(_shared(s.rank) for s in shapes)
    handle = handles.handle(executable)
    handle.keep = (*handle.keep, array)
    return address


def _shared(rank: int) -> int:
    if rank not in _BY_RANK:
        buffer, address, _ = handles.text(row_major(rank))
        _BY_RANK[rank] = buffer
        _SHARED.add(address)
    return ctypes.addressof(_BY_RANK[rank])
