"""Events across the C interface."""

from __future__ import annotations

import ctypes
from typing import Any

from heron.pjrt.c_api import errors, fast_paths, handles
from heron.pjrt.c_api.handles import EventCell
from heron.pjrt.c_api.slot import slot
from heron.pjrt.event import Event

#: the handle of every event that is done; it is never destroyed
DONE = handles.new(Event.done(), EventCell(fast_paths.ALWAYS_DONE)).address


def give(event: Event) -> int:
    """A handle of an event, which the caller destroys."""
    if event.is_ready and event.error is None:
        return DONE
    cell = EventCell(0)
    event.on_ready(lambda error: setattr(cell, "state", 1 if error is None else 2))
    return handles.new(event, cell).address


@slot("PJRT_Event_Destroy")
def destroy(args: Any) -> None:
    if args.event != DONE:
        handles.free(args.event)


@slot("PJRT_Event_IsReady")
def is_ready(args: Any) -> None:
    args.is_ready = handles.get(args.event).is_ready


@slot("PJRT_Event_Error")
def error_of(args: Any) -> None:
    event = handles.get(args.event)
    if event.error is not None:
        raise event.error


@slot("PJRT_Event_Await")
def await_event(args: Any) -> None:
    handles.get(args.event).await_()


@slot("PJRT_Event_OnReady")
def on_ready(args: Any) -> None:
    function, user = _CALLBACK(args.callback), args.user_arg

    def call(error: BaseException | None) -> None:
        function(0 if error is None else errors.new(error), user)

    handles.get(args.event).on_ready(call)


#: ctypes lets Python's lock go while C code runs
_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


@slot("PJRT_Event_Create")
def create(args: Any) -> None:
    args.event = handles.new(Event(), EventCell(0)).address


@slot("PJRT_Event_Set")
def set_event(args: Any) -> None:
    handle = handles.handle(args.event)
    message = handles.read_text(args.error_message, args.error_message_size).decode(errors="replace")
    error = errors.PjrtError(args.error_code, message) if args.error_code else None
    handle.cell.state = 1 if error is None else 2
    handle.object.set(error)
