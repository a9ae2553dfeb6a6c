"""The quick way through Execute: programs so short that the calling thread runs them, on buffers that are all there."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from heron.errors import HeronError
from heron.pjrt import element_types
from heron.pjrt.buffer import Buffer
from heron.pjrt.c_api import handles
from heron.pjrt.c_api.handles import BufferCell, Handle
from heron.pjrt.c_api.slots.events import DONE
from heron.pjrt.c_api.slots.layouts import of_rank
from heron.pjrt.loaded import LoadedExecutable

_PTR = ctypes.c_uint64
#: places of arguments of Execute, in words
_LISTS, _DEVICES, _ARGUMENTS, _OUTPUTS, _EVENTS, _DEVICE = 4, 5, 6, 7, 8, 9

#: runs with the words of Execute's arguments; False where it has to go the long way
Quick = Callable[[Any], bool]


def quick(executable: LoadedExecutable) -> Quick | None:
    """The quick way of a program; None where it has none."""
    if not executable.runs_at_once:
        return None
    device = executable.devices[0]
    memory, here, stats = device.default_memory, (0, device.handle), device.memory_stats
    run = executable.program.run
    count, places = len(executable.parameters), _PTR * len(executable.parameters)
    outputs = [_template(executable, n) for n in range(len(executable.outputs))]
    out_places, one = _PTR * len(outputs), _PTR * 1
    all_cells, template = BufferCell * len(outputs), b"".join(cell for *_, cell, _ in outputs)
    sizes = tuple(size for _, _, size, _, _ in outputs)
    find, file = handles.table().get, handles.table()
    make, new, copy = Buffer.of_array, object.__new__, all_cells.from_buffer_copy
    cell_size = ctypes.sizeof(BufferCell)

    def go(words: Any) -> bool:
        if words[_DEVICES] != 1 or words[_ARGUMENTS] != count or words[_DEVICE] not in here or executable.is_deleted:
            return False
        arrays = []
        if count:
            for at in places.from_address(one.from_address(words[_LISTS])[0]):
                found = find(at)
                array = found and found.object.array_now()
                if array is None:
                    return False
                arrays.append(array)
        try:
            results = run(arrays)
        except HeronError:
            return False  # the long way says what is wrong
        if outputs:
            cells = copy(template)
            at = ctypes.addressof(cells)
            to = out_places.from_address(one.from_address(words[_OUTPUTS])[0])
            n = 0
            for result, (element_type, dims, size, _, keep) in zip(results, outputs, strict=True):
                own = cells[n]
                own.array = id(result)
                handle = new(Handle)
                handle.object = make(memory, element_type, dims, result, size, own)
                handle.cell, handle.keep, handle.address, handle.references, handle.quick = own, keep, at, 1, None
                file[at] = handle
                to[n] = at
                at += cell_size
                n += 1
            stats.add_all(sizes)
        if words[_EVENTS]:
            one.from_address(words[_EVENTS])[0] = DONE
        return True

    return go


def _template(executable: LoadedExecutable, n: int) -> Any:
    """What every buffer of an output has in common."""
    shape = executable.outputs[n]
    device = executable.devices[0]
    dims = (ctypes.c_int64 * max(1, shape.rank))(*shape.dims)
    kind = element_types.number(shape.element_type)
    size = shape.byte_size
    cell = BufferCell(
        *(device.handle, device.default_memory.handle, kind, 0, 1),
        *(ctypes.addressof(dims), shape.rank, size, of_rank(shape.rank)),
    )
    return shape.element_type, shape.dims, size, bytes(cell), (dims,)
