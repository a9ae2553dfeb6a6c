"""The extension for layouts: buffers lie row-major unless a program was asked for results that lie otherwise. The
serialised form of a layout is its text, ``{1,0}``. Asking a buffer and serialising are native."""

from __future__ import annotations

import ctypes
from typing import Any

from heron.once import once
from heron.pjrt.c_api import handles, native
from heron.pjrt.c_api.handles import LayoutCell
from heron.pjrt.c_api.slot import slot
from heron.pjrt.loaded import minor_to_major

_PREFIX = "PJRT_Layouts"


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
    array, address = handles.pointers(of_order(minor_to_major(s)) for s in shapes)
    handle = handles.handle(executable)
    handle.keep = (*handle.keep, array)
    return address


@once
def _layout(order: tuple[int, ...]) -> tuple[LayoutCell, Any]:
    buffer, address, size = handles.text("{" + ",".join(map(str, order)) + "}")
    cell = LayoutCell(address, size, 0, native.entry("heron_nothing"))
    cell.self = ctypes.addressof(cell)
    return cell, buffer


def of_rank(rank: int) -> int:
    """The handle of the row-major layout of arrays of that rank."""
    return of_order(tuple(reversed(range(rank))))


def of_order(order: tuple[int, ...]) -> int:
    """The handle of the layout with these dimensions from minor to major, always the same; it is never destroyed."""
    return ctypes.addressof(_layout(order)[0])
