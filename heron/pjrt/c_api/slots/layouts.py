"""The extension for layouts: all buffers lie row-major, so there is one layout a rank. Its serialised form is its text,
``{1,0}``. Asking a buffer and serialising are native."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from heron.pjrt.c_api import handles, native
from heron.pjrt.c_api.handles import LayoutCell
from heron.pjrt.c_api.slots import slot

_PREFIX = "PJRT_Layouts"


def row_major(rank: int) -> str:
    """The text of the layout of an array of that rank."""
    return "{" + ",".join(map(str, reversed(range(rank)))) + "}"


@slot(f"{_PREFIX}_PJRT_Client_GetDefaultLayout")
def default_of_client(args: Any) -> None:
    args.layout = of_rank(args.num_dims)


@slot(f"{_PREFIX}_PJRT_Topology_GetDefaultLayout")
def default_of_topology(args: Any) -> None:
    args.layout = of_rank(args.num_dims)


@slot(f"{_PREFIX}_PJRT_Executable_GetOutputLayouts")
def of_outputs(args: Any) -> None:
    shapes = handles.get(args.executable).outputs
    args.num_outputs, args.layouts = len(shapes), _of_shapes(args.executable, shapes)


@slot(f"{_PREFIX}_PJRT_Executable_GetParameterLayouts")
def of_parameters(args: Any) -> None:
    shapes = handles.get(args.executable).parameters
    args.num_parameters, args.layouts = len(shapes), _of_shapes(args.executable, shapes)


def _of_shapes(executable: int, shapes: Any) -> int:
    array, address = handles.pointers(of_rank(s.rank) for s in shapes)
    handle = handles.handle(executable)
    handle.keep = (*handle.keep, array)
    return address


@cache
def _layout(rank: int) -> tuple[LayoutCell, Any]:
    buffer, address, size = handles.text(row_major(rank))
    cell = LayoutCell(address, size, 0, native.entry("heron_nothing"))
    cell.self = ctypes.addressof(cell)
    return cell, buffer


def of_rank(rank: int) -> int:
    """The handle of the layout of arrays of that rank, the same one every time; it is never destroyed."""
    return ctypes.addressof(_layout(rank)[0])
