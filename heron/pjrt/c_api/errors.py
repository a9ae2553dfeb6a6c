"""Python exceptions as PJRT errors."""

from __future__ import annotations

import ctypes
import traceback
from typing import Any

from heron.errors import HeronError
from heron.once import once
from heron.pjrt.c_api import abi, native
from heron.pjrt.c_api.handles import ErrorCell

#: statuses of heron's codes; the first prefix that fits counts
_STATUSES = (
    ("PJRT015", "UNIMPLEMENTED"),
    ("PJRT018", "UNIMPLEMENTED"),
    ("PJRT025", "UNIMPLEMENTED"),
    ("PJRT029", "UNIMPLEMENTED"),
    ("PJRT030", "FAILED_PRECONDITION"),
    ("PJRT", "INVALID_ARGUMENT"),
    ("SHLO005", "UNIMPLEMENTED"),
    ("GEN", "UNIMPLEMENTED"),
    ("RUN010", "RESOURCE_EXHAUSTED"),
    ("RUN00", "INVALID_ARGUMENT"),
    ("RUN081", "FAILED_PRECONDITION"),
    ("RUN082", "ABORTED"),
    ("RUN088", "DEADLINE_EXCEEDED"),
    ("CLI02", "INVALID_ARGUMENT"),
    ("TGT", "INVALID_ARGUMENT"),
)


class PjrtError(Exception):
    """An error that came from C with its status: a code's number and a message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def status_of(error: BaseException) -> int:
    """PJRT's status of an exception."""
    if isinstance(error, PjrtError):
        return error.status
    if isinstance(error, HeronError):
        return abi.code(next((s for p, s in _STATUSES if error.code.startswith(p)), "INTERNAL"))
    if isinstance(error, MemoryError):
        return abi.code("RESOURCE_EXHAUSTED")
    if isinstance(error, NotImplementedError):
        return abi.code("UNIMPLEMENTED")
    if isinstance(error, KeyboardInterrupt):
        return abi.code("CANCELLED")
    return abi.code("INTERNAL")


def message_of(error: BaseException) -> str:
    """The message for the user: heron's own, or the traceback of a bug."""
    if isinstance(error, (HeronError, PjrtError)):
        return str(error)
    shown = "".join(traceback.format_exception(error)[-12:])
    return f"{type(error).__name__}: {error}\n{shown}"


def new(error: BaseException) -> int:
    """The address of a PJRT_Error that C code owns."""
    return new_error(status_of(error), message_of(error))


def new_error(status: int, message: str) -> int:
    """The address of a PJRT_Error of a status, owned by C code."""
    data = message.encode(errors="replace")
    size = ctypes.sizeof(ErrorCell)
    place = malloc()(size + len(data) + 1)
    cell = ErrorCell.from_address(place)
    cell.table, cell.code, cell.message, cell.size = ctypes.addressof(_vtable()), status, place + size, len(data)
    ctypes.memmove(place + size, data + b"\0", len(data) + 1)
    return place


def take(address: int) -> PjrtError:
    """The exception of a PJRT_Error, which is gone then."""
    cell = ErrorCell.from_address(address)
    error = PjrtError(cell.code, ctypes.string_at(cell.message, cell.size).decode(errors="replace"))
    native.call_c(None, native.entry("heron_error_destroy"), (ctypes.c_void_p, address))
    return error


@once
def _vtable() -> Any:
    table = abi.struct("PJRT_Error_FunctionTable")()
    table.struct_size, table.instance_size = ctypes.sizeof(table), ctypes.sizeof(ErrorCell)
    table.destroy, table.message = native.entry("heron_error_destroy"), native.entry("heron_error_message")
    table.get_code, table.for_each_payload = native.entry("heron_error_code"), native.entry("heron_error_payloads")
    return table


@once
def malloc() -> Any:
    malloc = ctypes.CDLL(None).malloc
    malloc.restype, malloc.argtypes = ctypes.c_size_t, [ctypes.c_size_t]
    return malloc
