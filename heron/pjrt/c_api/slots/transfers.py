"""Transfers in pieces: buffers that are filled while others already wait for them."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from heron.pjrt import element_types
from heron.pjrt.buffer import Buffer
from heron.pjrt.c_api import abi, errors, handles
from heron.pjrt.c_api.slot import slot
from heron.pjrt.c_api.slots.buffers import give
from heron.pjrt.c_api.slots.events import give as give_event
from heron.pjrt.device import Memory
from heron.pjrt.event import Event

_PREFIX = "PJRT_AsyncHostToDeviceTransferManager"


class TransferManager:
    """Buffers of a memory and the bytes that have arrived for them."""

    def __init__(self, memory: Memory, buffers: list[Buffer]) -> None:
        self.memory, self.buffers = memory, buffers
        self._bytes = [np.empty(b.size_in_bytes, np.uint8) for b in buffers]

    def write(self, n: int, offset: int, data: int, size: int, is_last: bool) -> None:
        """Bytes for buffer `n`; it is ready when they are the last."""
        if size:
            ctypes.memmove(self._bytes[n].ctypes.data + offset, data, size)
        if is_last:
            b = self.buffers[n]
            b.fulfil(self._bytes[n].view(b.element_type.dtype).reshape(b.dims))


@slot("PJRT_Client_CreateBuffersForAsyncHostToDevice")
def create(args: Any) -> None:
    client, memory = handles.get(args.client), handles.get(args.memory)
    specs: Any = (abi.struct("PJRT_ShapeSpec") * args.num_shape_specs).from_address(args.shape_specs)
    buffers = [
        client.pending(
            element_types.of_number(s.element_type), handles.read_integers(ctypes.c_int64, s.dims, s.num_dims), memory
        )
        for s in specs
    ]
    args.transfer_manager = handles.new(TransferManager(memory, buffers), handles.EventCell(0)).address


@slot(f"{_PREFIX}_Destroy")
def destroy(args: Any) -> None:
    handles.free(args.transfer_manager)


@slot(f"{_PREFIX}_TransferData")
def transfer(args: Any) -> None:
    manager = handles.get(args.transfer_manager)
    manager.write(args.buffer_index, args.offset, args.data, args.transfer_size, args.is_last_transfer)
    args.done_with_h2d_transfer = give_event(Event.done())


@slot(f"{_PREFIX}_TransferLiteral")
def transfer_literal(args: Any) -> None:
    manager = handles.get(args.transfer_manager)
    size = manager.buffers[args.buffer_index].size_in_bytes
    manager.write(args.buffer_index, 0, args.data, size, True)
    args.done_with_h2d_transfer = give_event(Event.done())


@slot(f"{_PREFIX}_RetrieveBuffer")
def retrieve(args: Any) -> None:
    args.buffer_out = give(handles.get(args.transfer_manager).buffers[args.buffer_index])


@slot(f"{_PREFIX}_Device")
def device(args: Any) -> None:
    args.device_out = handles.get(args.transfer_manager).memory.device.handle


@slot(f"{_PREFIX}_BufferCount")
def count(args: Any) -> None:
    args.buffer_count = len(handles.get(args.transfer_manager).buffers)


@slot(f"{_PREFIX}_BufferSize")
def size_of(args: Any) -> None:
    args.buffer_size = handles.get(args.transfer_manager).buffers[args.buffer_index].size_in_bytes


@slot(f"{_PREFIX}_SetBufferError")
def set_error(args: Any) -> None:
    message = handles.read_text(args.error_message, args.error_message_size).decode(errors="replace")
    handles.get(args.transfer_manager).buffers[args.buffer_index].fail(errors.PjrtError(args.error_code, message))


@slot(f"{_PREFIX}_AddMetadata")
def add_metadata(args: Any) -> None:
    del args  # nothing here reads it
