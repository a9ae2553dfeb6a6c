"""Data by which native code runs small programs and copies small arrays itself (`quick_code.py`): free cells, a plan
for each program, and a handle for one of its own buffers when a request needs Python."""

from __future__ import annotations

import ctypes
from typing import Any

from heron.once import once
from heron.pjrt import element_types
from heron.pjrt.buffer import Buffer
from heron.pjrt.c_api import fast_paths, handles, native
from heron.pjrt.c_api.free_cells import Kind, Shared
from heron.pjrt.c_api.handles import BufferCell, Handle, PlanCell
from heron.pjrt.c_api.slots.events import DONE
from heron.pjrt.c_api.slots.layouts import of_rank
from heron.pjrt.device import Device
from heron.pjrt.loaded import LoadedExecutable
from heron.runtime import numpy_api

_I64, _PTR = ctypes.c_int64, ctypes.c_void_p
_CELL = ctypes.sizeof(BufferCell)
#: from one cell to the next: each begins on a cache line
_STEP = -(-_CELL // 64) * 64
#: bytes of memory for cells, which begins at a multiple of that, and how many cells it has
_SLAB = 1 << 16
_IN_SLAB = _SLAB // _STEP
#: beginnings of slabs; they stay as long as the process
_SLABS: set[int] = set()


def _native(name: str, result: Any, *kinds: Any) -> Any:
    """A native function that is called with Python's lock held."""
    return ctypes.PYFUNCTYPE(result, *kinds)(native.entry(name))


def set_up() -> None:
    """Give native code what it needs; nothing where it cannot know how arrays lie in memory."""
    if not numpy_api.known_layout():
        return
    ranks = [of_rank(n) for n in range(handles.MOST_DIMS + 1)]
    shared = _shared()
    shared.layouts[:], shared.done, shared.refusal = ranks, DONE, id(NotImplemented)
    for n, element_type in element_types.numbered():
        dtype = element_type.dtype
        if element_type.bits >= 8:  # narrower ones need more than a copy
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(dtype))
            shared.kinds[n] = Kind(id(dtype), dtype.itemsize)
    handles.adopt_with(_adopt)
    have_cells(1)


# -- cells -------------------------------------------------------------------------------------------------------------


@once
def _shared() -> Shared:
    """The data shared with native code, if there is any."""
    return Shared.from_address(_native("heron_shared_words", _PTR)())


def live_cells() -> int:
    """The number of buffers that only native code holds."""
    return _shared().live_count if numpy_api.known_layout() else 0


def have_cells(wanted: int) -> None:
    """See that so many cells are free, where native code uses them."""
    if not numpy_api.known_layout():
        return
    push = _native("heron_push", None, _PTR)
    while _shared().free_count < wanted:
        memory = ctypes.create_string_buffer(2 * _SLAB)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(memory))
        slab = -(-ctypes.addressof(memory) // _SLAB) * _SLAB
        _SLABS.add(slab)
        for n in range(_IN_SLAB):
            push(slab + n * _STEP)


def _adopt(address: int) -> Handle | None:
    """A handle of a cell that only native code has; None for other addresses."""
    if address & -_SLAB not in _SLABS or address % _SLAB % _STEP:
        return None
    cell = BufferCell.from_address(address)
    if cell.born != handles.NATIVE:
        return None
    array = ctypes.cast(cell.array, ctypes.py_object).value
    _native("heron_adopt", None, _PTR)(address)
    dims = handles.read_integers(_I64, cell.dims, cell.num_dims)
    memory = handles.get(cell.memory)
    buffer = Buffer(memory, element_types.of_number(cell.type), dims, array, owned=True)
    buffer.handle = cell
    return handles.new(buffer, cell)


# -- programs ----------------------------------------------------------------------------------------------------------


def plan(executable: LoadedExecutable) -> PlanCell | None:
    """The plan by which native code runs a program; None if it cannot, or not yet."""
    entry = executable.program.native_entry() if executable.runs_at_once else None
    if entry is None or not _fits(executable):
        return None
    devices, outputs = executable.devices, len(executable.outputs)
    cells = [_model(executable, device, n) for device in devices for n in range(outputs)]
    sizes = [s.byte_size for s in executable.outputs]
    text = ctypes.create_string_buffer(b"".join(cells))
    each = [device.memory_stats.counters for device in devices]
    counters, place = handles.pointers(map(ctypes.addressof, each))
    made = PlanCell(entry.function, entry.object, len(executable.parameters), devices[0].handle, outputs)
    made.cells, made.counters, made.devices = ctypes.addressof(text), place, len(devices)
    made.bytes, made.largest = sum(sizes), max(sizes, default=0)
    made.keep = entry, text, each, counters
    return made


def _fits(executable: LoadedExecutable) -> bool:
    ranks = [s.rank for s in executable.outputs]
    return (
        numpy_api.known_layout()
        and max(ranks, default=0) <= handles.MOST_DIMS
        and len(executable.devices) * len(executable.parameters) <= fast_paths.MOST_ARGUMENTS
    )


def _model(executable: LoadedExecutable, device: Device, n: int) -> bytes:
    """The fields that all cells of an output on a device share."""
    shape = executable.outputs[n]
    cell = BufferCell(device.handle, device.default_memory.handle, element_types.number(shape.element_type), 0, 1)
    cell.num_dims, cell.size, cell.layout = shape.rank, shape.byte_size, of_rank(shape.rank)
    cell.born, cell.counters = handles.NATIVE, ctypes.addressof(device.memory_stats.counters)
    cell.own_dims[: shape.rank] = shape.dims
    return bytes(cell)
