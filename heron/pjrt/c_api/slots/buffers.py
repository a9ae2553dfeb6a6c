"""Buffers across the C interface."""

from __future__ import annotations

import ctypes
import functools
from math import prod
from typing import Any

import numpy as np

from heron.errors import HeronError
from heron.hlo.ir.types import ElementType
from heron.pjrt import element_types
from heron.pjrt.buffer import Buffer, row_major
from heron.pjrt.c_api import abi, errors, fast_paths, handles
from heron.pjrt.c_api.handles import BufferCell
from heron.pjrt.c_api.slot import hot_slot, slot
from heron.pjrt.c_api.slots.clients import place
from heron.pjrt.c_api.slots.events import give as give_event
from heron.pjrt.c_api.slots.layouts import of_order
from heron.pjrt.c_api.slots.quick import have_cells
from heron.pjrt.event import Event
from heron.runtime.memory import ARGUMENT_ALIGNMENT

_I64 = ctypes.c_int64
#: what the host promises of its memory: unchanged while the call lasts, until the copy is made, as long as the buffer
_ZERO_COPY = 2


def give(buffer: Buffer) -> int:
    """A handle of a buffer, which the caller destroys."""
    memory, rank = buffer.memory, len(buffer.dims)
    cell = BufferCell(
        *(memory.device.handle, memory.handle, element_types.number(buffer.element_type)),
        *(buffer.deleted, _can_be_looked_at(buffer), 0, rank, buffer.size_in_bytes),
    )
    dims = cell.own_dims if rank <= handles.MOST_DIMS else (_I64 * rank)()
    dims[:rank] = buffer.dims
    cell.dims, cell.layout = ctypes.addressof(dims), of_order(buffer.minor_to_major)
    handle = handles.new(buffer, cell, dims)
    buffer.handle = cell
    if isinstance(array := buffer.array_now(), np.ndarray):
        cell.array = id(array)
    return handle.address


def _can_be_looked_at(buffer: Buffer) -> bool:
    """Whether who has the address may read the elements there, as a row-major array."""
    return buffer.memory.gpu is None and buffer.minor_to_major == row_major(len(buffer.dims))


def shape(args: Any, prefix: str = "") -> tuple[ElementType, tuple[int, ...]]:
    """The element type and dimensions `args` give."""
    kind = getattr(args, f"{prefix}element_type")
    dims = handles.read_integers(_I64, getattr(args, f"{prefix}dims"), getattr(args, f"{prefix}num_dims"))
    return element_types.of_number(kind), dims


@slot("PJRT_Client_BufferFromHostBuffer")
def from_host(args: Any) -> None:
    client, memory = handles.get(args.client), place(args)
    element_type = element_types.of_number(args.type)
    dims = handles.read_integers(_I64, args.dims, args.num_dims)
    strides = handles.read_integers(_I64, args.byte_strides, args.num_byte_strides) or None
    done = Event.done()
    if memory.gpu is None and _may_share(args, element_type, dims, strides):
        done = Event()
        buffer = client.view(args.data, element_type, dims, memory, on_delete=done.set)
    else:
        lying = _host_array(args.data, element_type.dtype, dims, strides)
        array = element_types.without_spare_bits(lying, element_type)
        is_copy = memory.gpu is not None or array is not lying  # a GPU has a copy anyway
        own = np.asarray(array, order="C") if is_copy else np.array(array, order="C", copy=True)
        buffer = Buffer(memory, element_type, dims, own, owned=True)
    args.done_with_host_buffer = give_event(done)
    args.buffer = give(buffer)
    have_cells(1)


def _may_share(args: Any, element_type: ElementType, dims: tuple[int, ...], strides: tuple[int, ...] | None) -> bool:
    if args.host_buffer_semantics < _ZERO_COPY or args.data % ARGUMENT_ALIGNMENT or not args.data:
        return False
    if prod(dims) * element_type.byte_size < fast_paths.SMALL or element_types.has_spare_bits(element_type):
        return False
    return strides is None or strides == _row_major(element_type.byte_size, dims)


def _row_major(size: int, dims: tuple[int, ...]) -> tuple[int, ...]:
    strides = []
    for d in reversed(dims):
        strides.append(size)
        size *= d
    return tuple(reversed(strides))


def _host_array(data: int, dtype: np.dtype, dims: tuple[int, ...], strides: tuple[int, ...] | None) -> np.ndarray:
    """A view of the host's memory; strides may be negative or zero."""
    if not data or 0 in dims:
        return np.empty(dims, dtype)
    steps = strides or _row_major(dtype.itemsize, dims)
    low = sum((d - 1) * s for d, s in zip(dims, steps, strict=True) if s < 0)
    high = sum((d - 1) * s for d, s in zip(dims, steps, strict=True) if s > 0) + dtype.itemsize
    raw: Any = (ctypes.c_uint8 * (high - low)).from_address(data + low)
    return np.ndarray(dims, dtype, raw, -low, steps)


@slot("PJRT_Client_CreateViewOfDeviceBuffer")
def view(args: Any) -> None:
    element_type, dims = shape(args)
    on_delete = None
    if args.on_delete_callback:
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(args.on_delete_callback)
        on_delete = functools.partial(function, args.device_buffer_ptr, args.on_delete_callback_arg)
    client = handles.get(args.client)
    order = handles.minor_to_major(args.layout)
    args.buffer = give(client.view(args.device_buffer_ptr, element_type, dims, place(args), on_delete, order))


@slot("PJRT_Client_CreateUninitializedBuffer")
def uninitialized(args: Any) -> None:
    element_type, dims = shape(args, "shape_") if hasattr(args, "shape_dims") else shape(args)
    args.buffer = give(handles.get(args.client).uninitialized(element_type, dims, place(args)))


@slot("PJRT_Client_CreateErrorBuffer")
def error_buffer(args: Any) -> None:
    message = handles.read_text(args.error_message, args.error_message_size).decode(errors="replace")
    element_type, dims = shape(args, "shape_")
    buffer = handles.get(args.client).pending(element_type, dims, handles.get(args.memory))
    buffer.fail(errors.PjrtError(args.error_code, message))
    args.buffer = give(buffer)


@slot("PJRT_Client_CreateAliasBuffer")
def alias_buffer(args: Any) -> None:
    element_type, dims = shape(args, "shape_")
    buffer = handles.get(args.client).pending(element_type, dims, handles.get(args.memory))
    args.alias_buffer = give(buffer)
    args.fulfill_alias_buffer_cb = handles.new(buffer, handles.EventCell(0)).address


@slot("PJRT_Client_FulfillAliasBuffer")
def fulfil_alias(args: Any) -> None:
    alias: Buffer = handles.get(args.fulfill_alias_buffer_cb)
    handles.free(args.fulfill_alias_buffer_cb)
    if args.status_code:
        message = handles.read_text(args.error_message, args.error_message_size).decode(errors="replace")
        alias.fail(errors.PjrtError(args.status_code, message))
        return
    source: Buffer = handles.get(args.buffer)

    def fill(_: BaseException | None) -> None:
        try:
            alias.fulfil(source.held() if alias.memory is source.memory else source.array())
        except Exception as error:
            alias.fail(error)

    source.ready.on_ready(fill)


@hot_slot("PJRT_Buffer_Destroy")
def destroy(at: int) -> None:
    handle = handles.free(_I64.from_address(at + 16).value)
    if handle is not None:
        handle.object.handle = None  # the cell may become another buffer's


@slot("PJRT_Buffer_Delete")
def delete(args: Any) -> None:
    handle = handles.handle(args.buffer)
    handle.object.delete()
    handle.cell.is_deleted = 1


@slot("PJRT_Buffer_GetMemoryLayout")
def memory_layout(args: Any) -> None:
    handle = handles.handle(args.buffer)
    rank = len(handle.object.dims)
    order, order_at = handles.array(_I64, handle.object.minor_to_major)
    handle.keep = (*handle.keep, order)
    args.layout.type = handles.TILED
    tiled = args.layout._u0.tiled
    tiled.minor_to_major, tiled.minor_to_major_size = order_at, rank
    tiled.tile_dims = tiled.tile_dim_sizes = tiled.num_tiles = 0


@slot("PJRT_Buffer_ToHostBuffer")
def to_host(args: Any) -> None:
    buffer: Buffer = handles.get(args.src)
    if not args.dst:
        args.dst_size = buffer.size_in_bytes
        return
    strides = _host_strides(args.host_layout, buffer)
    if args.dst_size < buffer.size_in_bytes:
        why = f"{args.dst_size} bytes given, {buffer.size_in_bytes} needed"
        raise HeronError("PJRT016", f"the destination is too small for {buffer}", why=why)
    target = _host_array(args.dst, buffer.element_type.dtype, buffer.dims, strides)
    args.event = give_event(copy_when_ready(buffer, lambda array: np.copyto(target, array)))


def copy_when_ready(buffer: Buffer, copy: Any) -> Event:
    """An event of `copy` of the buffer's array, which is made when the array is there."""
    if buffer.deleted and buffer.ready.is_ready and buffer.ready.error is None:
        raise buffer.gone()
    if buffer.ready.is_ready:
        copy(buffer.array())
        return Event.done()
    done = Event()

    def when_ready(_: BaseException | None) -> None:
        try:
            copy(buffer.array())
        except Exception as error:
            done.set(error)
        else:
            done.set()

    buffer.ready.on_ready(when_ready)
    return done


def _host_strides(layout_at: int, buffer: Buffer) -> tuple[int, ...] | None:
    """Strides in bytes the host asks for; None: row-major."""
    if not layout_at:
        return None
    order = handles.minor_to_major(layout_at)
    if order is None:
        strided = abi.struct("PJRT_Buffer_MemoryLayout").from_address(layout_at)._u0.strides
        return handles.read_integers(_I64, strided.byte_strides, strided.num_byte_strides) or None
    strides, size = [0] * len(order), buffer.element_type.byte_size
    for d in order:
        strides[d] = size
        size *= buffer.dims[d]
    return tuple(strides) or None


@slot("PJRT_Buffer_CopyRawToHost")
def copy_raw(args: Any) -> None:
    buffer = handles.get(args.buffer)
    args.event = give_event(copy_when_ready(buffer, raw_copy(args.dst, args.offset, args.transfer_size)))


def raw_copy(target: int, offset: int, size: int) -> Any:
    """A function that copies bytes of an array, in its layout, to an address."""
    return lambda array: ctypes.memmove(target, array.ctypes.data + offset, size)


@slot("PJRT_Buffer_CopyToDevice")
def copy_to_device(args: Any) -> None:
    args.dst_buffer = give(handles.get(args.buffer).copy_to(handles.get(args.dst_device).default_memory))


@slot("PJRT_Buffer_CopyToMemory")
def copy_to_memory(args: Any) -> None:
    args.dst_buffer = give(handles.get(args.buffer).copy_to(handles.get(args.dst_memory)))


@slot("PJRT_Buffer_Bitcast")
def bitcast(args: Any) -> None:
    buffer: Buffer = handles.get(args.buffer)
    element_type, dims = shape(args)
    array = buffer.array().reshape(-1).view(element_type.dtype).reshape(dims)
    args.out_buffer = give(Buffer(buffer.memory, element_type, dims, array, owned=False))


@slot("PJRT_Buffer_ReadyEvent")
def ready_event(args: Any) -> None:
    args.event = give_event(handles.get(args.buffer).ready)


@slot("PJRT_Buffer_UnsafePointer")
def unsafe_pointer(args: Any) -> None:
    args.buffer_pointer = handles.get(args.buffer).pointer


@slot("PJRT_Buffer_OpaqueDeviceMemoryDataPointer")
def data_pointer(args: Any) -> None:
    args.device_memory_ptr = handles.get(args.buffer).pointer
