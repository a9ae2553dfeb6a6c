"""Slots whose caller says later, through a callback it is given, that work may go on; and streams nobody is given."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from heron.errors import HeronError
from heron.once import once
from heron.pjrt.buffer import Buffer
from heron.pjrt.c_api import abi, errors, handles
from heron.pjrt.c_api.slot import slot
from heron.pjrt.c_api.slots.buffers import copy_when_ready, give, raw_copy
from heron.pjrt.c_api.slots.events import give as give_event
from heron.pjrt.event import Event

#: what goes on, with the arguments of the callback and the error they tell of
_Goes = Callable[[Any, BaseException | None], None]


def _ask(args: Any, field: str, kind: str, goes: _Goes) -> None:
    """Give the caller a callback of that kind of arguments; it is to be called once."""
    args.callback_data = handles.new(goes, handles.EventCell(0)).address
    setattr(args, field, _callback(kind)[1])


@once
def _callback(kind: str) -> tuple[Any, int]:
    """The C function of a kind of arguments: what to keep alive, and its address."""

    def call(at: int) -> None:
        args: Any = abi.struct(kind).from_address(at)
        handle = handles.free(args.callback_data)
        if handle is None:
            return
        message = handles.read_text(args.error_message, args.error_message_size).decode(errors="replace")
        handle.object(args, errors.PjrtError(args.error_code, message) if args.error_code else None)

    native = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(call)
    return native, ctypes.cast(native, ctypes.c_void_p).value or 0


@slot("PJRT_Buffer_CopyRawToHostFuture")
def copy_raw_later(args: Any) -> None:
    """A copy to an address that the caller does not know yet."""
    buffer: Buffer = handles.get(args.buffer)
    offset, size, done = args.offset, args.transfer_size, Event()

    def goes(told: Any, error: BaseException | None) -> None:
        try:
            if error is not None:
                raise error
            copied = copy_when_ready(buffer, raw_copy(told.dst, offset, size))
        except Exception as failure:
            done.set(failure)
        else:
            copied.on_ready(done.set)

    args.event = give_event(done)
    _ask(args, "future_ready_callback", "PJRT_Buffer_CopyRawToHostFuture_Callback_Args", goes)


@slot("PJRT_Buffer_DonateWithControlDependency")
def donate_later(args: Any) -> None:
    """The buffer becomes another one, which is ready when the caller says so."""
    handle = handles.handle(args.buffer)
    source: Buffer = handle.object
    if source.deleted:
        raise source.gone()
    given = Buffer(source.memory, source.element_type, source.dims, None, source.owned, source.minor_to_major)
    held = source.array_now()

    def goes(_: Any, error: BaseException | None) -> None:
        def fill(failure: BaseException | None) -> None:
            wrong = error or failure
            if wrong is not None:
                given.fail(wrong)
            else:
                given.fulfil(source.held() if held is None else held)

        source.ready.on_ready(fill)

    source.delete()
    handle.cell.is_deleted = 1
    args.out_buffer = give(given)
    _ask(args, "dependency_ready_callback", "PJRT_Buffer_DonateWithControlDependency_Callback_Args", goes)


def _no_stream(args: Any) -> None:
    del args
    why = "the stream belongs to a program that receives from the host while it runs"
    raise HeronError("PJRT018", "programs that receive from the host are not supported", why=why)


for _name in ("Destroy", "AddChunk", "TotalBytes", "GranuleSize", "CurrentBytes"):
    slot(f"PJRT_CopyToDeviceStream_{_name}")(_no_stream)
