"""Handles: what C code holds of our objects: addresses of small structures, whose fields native getters read.

A Python object stays alive as long as its handle: `new` files it, `free` lets it go.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from heron.errors import HeronError
from heron.pjrt.c_api import abi

_PTR, _I64, _I32, _U8 = ctypes.c_uint64, ctypes.c_int64, ctypes.c_int32, ctypes.c_uint8
#: how many frameworks' notes a memory has room for
USER_DATA = 16
#: dimensions a cell of native code has room for
MOST_DIMS = 8


class Cell(ctypes.Structure):
    """A structure C code points to."""

    _fields_: list[tuple[str, Any]] = []


class EventCell(Cell):
    """``state``: 0 is pending, 1 done, 2 failed; 3 done and never destroyed."""

    _fields_ = [("state", _I64)]


class ErrorCell(Cell):
    """An error, which `errors.py` makes with malloc, followed by its message."""

    _fields_ = [("table", _PTR), ("code", _I32), ("message", _PTR), ("size", _I64)]


class LayoutCell(Cell):
    """A layout that is never destroyed; `self` is its own address, `deleter` a function that does nothing."""

    _fields_ = [("text", _PTR), ("size", _I64), ("self", _PTR), ("deleter", _PTR)]


class BufferCell(Cell):
    """``external``: how many outside refer to the memory. ``array``: the NumPy array that lies there (its address as a
    Python object), 0 where Python has to be asked for it. ``own_dims``: room for the dimensions of most. Facts that are
    asked together lie together.

    ``born``: whose the cell is. One of `PYTHONS` belongs to a `Buffer`. One of native code (`fast_paths.py`) has no
    `Buffer`, a reference to its array, and `counters` to count it in; `adopted` it has a `Buffer` as well, which has
    the rest. ``next``: the next `FREE` one.
    """

    _fields_ = [
        *(("device", _PTR), ("memory", _PTR), ("type", _I32), ("is_deleted", _U8), ("is_on_cpu", _U8)),
        *(("dims", _PTR), ("num_dims", _I64), ("size", _I64), ("external", _I64), ("array", _PTR)),
        *(("own_dims", _I64 * MOST_DIMS), ("layout", _PTR), ("zero", _I64), ("null", _PTR)),
        *(("born", _I64), ("counters", _PTR), ("next", _PTR)),
    ]


#: values of `BufferCell.born`
PYTHONS, NATIVE, ADOPTED, FREE = range(4)


class PlanCell(Cell):
    """The plan by which native code runs a program: a C function ``call(self, arguments, count)`` that returns a tuple
    of arrays, its first device, and how many ``devices`` run together. ``arguments``, ``outputs``: of one device, of
    `bytes` in all, the largest of `largest`. ``cells``: templates of the cells of all outputs. ``counters``: their
    addresses, by device."""

    _fields_ = [
        *(("call", _PTR), ("self", _PTR), ("arguments", _I64), ("device", _PTR), ("outputs", _I64)),
        *(("cells", _PTR), ("counters", _PTR), ("bytes", _I64), ("largest", _I64), ("devices", _I64)),
    ]


class DescriptionCell(Cell):
    _fields_ = [
        *(("id", _I32), ("process_index", _I32), ("kind", _PTR), ("kind_size", _I64)),
        *(("text", _PTR), ("text_size", _I64), ("printed", _PTR), ("printed_size", _I64)),
        *(("attributes", _PTR), ("num_attributes", _I64)),
    ]


class DeviceCell(Cell):
    _fields_ = [
        *(("description", _PTR), ("is_addressable", _U8), ("local_hardware_id", _I32)),
        *(("memories", _PTR), ("num_memories", _I64), ("default_memory", _PTR)),
    ]


class MemoryCell(Cell):
    """``vtable`` comes first: C++ calls through it. ``user_data``: key, value and destructor of each note.
    ``counters``: where native code counts buffers it makes there; 0: it makes none."""

    _fields_ = [
        *(("vtable", _PTR), ("user_data", _PTR * (3 * USER_DATA)), ("id", _I32), ("kind_id", _I32)),
        *(("kind", _PTR), ("kind_size", _I64), ("text", _PTR), ("text_size", _I64)),
        *(("devices", _PTR), ("num_devices", _I64), ("counters", _PTR)),
    ]


class ClientCell(Cell):
    _fields_ = [
        *(("name", _PTR), ("name_size", _I64), ("version", _PTR), ("version_size", _I64), ("process_index", _I32)),
        *(("devices", _PTR), ("num_devices", _I64), ("memories", _PTR), ("num_memories", _I64), ("topology", _PTR)),
        *(("all_devices", _PTR), ("num_all_devices", _I64)),
    ]


class TopologyCell(Cell):
    _fields_ = [
        *(("name", _PTR), ("name_size", _I64), ("version", _PTR), ("version_size", _I64), ("fingerprint", _I64)),
        *(("descriptions", _PTR), ("num_descriptions", _I64), ("attributes", _PTR), ("num_attributes", _I64)),
    ]


class ExecutableCell(Cell):
    """A loaded executable, and the same seen as an executable. ``plan``: a `PlanCell`, 0 where there is none."""

    _fields_ = [
        *(("name", _PTR), ("name_size", _I64), ("num_replicas", _I64), ("num_partitions", _I64)),
        *(("num_outputs", _I64), ("code_size", _I64), ("is_deleted", _U8)),
        *(("output_types", _PTR), ("output_dims", _PTR), ("output_dim_sizes", _PTR)),
        *(("output_kinds", _PTR), ("output_kind_sizes", _PTR)),
        *(("num_parameters", _I64), ("parameter_kinds", _PTR), ("parameter_kind_sizes", _PTR)),
        *(("devices", _PTR), ("num_devices", _I64), ("logical_ids", _PTR)),
        *(("fingerprint", _PTR), ("fingerprint_size", _I64), ("plan", _PTR)),
    ]


class Handle:
    """An object with its cell, and whatever else the cell points to (`keep`)."""

    __slots__ = ("address", "cell", "keep", "object", "references")

    def __init__(self, thing: Any, cell: Any, keep: tuple[Any, ...] = ()) -> None:
        self.object, self.cell, self.keep = thing, cell, keep
        self.address = ctypes.addressof(cell)
        self.references = 1


_HANDLES: dict[int, Handle] = {}


def new(thing: Any, cell: Any, *keep: Any) -> Handle:
    """A handle of the object, filed under its address."""
    handle = Handle(thing, cell, keep)
    _HANDLES[handle.address] = handle
    return handle


def handle(address: int) -> Handle:
    """The handle at an address. Raises PJRT014 for an address that is none."""
    found = _HANDLES.get(address) or _adopt(address)
    if found is None:
        raise HeronError("PJRT014", f"{address:#x} is not a handle of heron, or was destroyed")
    return found


def get(address: int) -> Any:
    """The object of the handle at an address. Raises PJRT014."""
    found = _HANDLES.get(address)
    return (found or handle(address)).object


def free(address: int) -> Handle | None:
    """The handle is destroyed; gives it when this was its last reference. Nothing happens when it is none."""
    found = _HANDLES.get(address)
    if found is None:
        return None
    found.references -= 1
    return _HANDLES.pop(address, None) if found.references == 0 else None


def count() -> int:
    """The number of handles, those of native code not counted."""
    return len(_HANDLES)


def adopt_with(adopt: Callable[[int], Handle | None]) -> None:
    """Say what makes a handle of a cell of native code; it gives None for an address that is none."""
    global _adopt
    _adopt = adopt


_adopt: Callable[[int], Handle | None] = lambda _: None  # noqa: E731


# -- memory C code reads -----------------------------------------------------------------------------------------------


def text(value: str | bytes) -> tuple[Any, int, int]:
    """Text as C has it: what to keep alive, its address, its size."""
    data = value.encode() if isinstance(value, str) else value
    buffer = ctypes.create_string_buffer(data, len(data) + 1)
    return buffer, ctypes.addressof(buffer), len(data)


def array(kind: Any, values: Any) -> tuple[Any, int]:
    """An array as C has it: what to keep alive, its address."""
    items = list(values)
    made = (kind * max(1, len(items)))(*items)
    return made, ctypes.addressof(made)


def pointers(values: Any) -> tuple[Any, int]:
    """An array of addresses."""
    return array(_PTR, values)


def read_text(address: int, size: int) -> bytes:
    """`size` bytes at an address."""
    return ctypes.string_at(address, size) if size else b""


def read_integers(kind: Any, address: int, count: int) -> tuple[int, ...]:
    """Integers of a ctypes kind at an address."""
    return tuple((kind * count).from_address(address)) if count else ()


#: the type of layouts that name an order of dimensions
TILED = 0


def minor_to_major(layout: int) -> tuple[int, ...] | None:
    """The order of dimensions that a PJRT_Buffer_MemoryLayout at an address names; None where it names none."""
    found: Any = abi.struct("PJRT_Buffer_MemoryLayout").from_address(layout) if layout else None
    if found is None or found.type != TILED:
        return None
    tiled = found._u0.tiled
    return read_integers(_I64, tiled.minor_to_major, tiled.minor_to_major_size)
