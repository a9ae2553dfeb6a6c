"""The services that handlers of XLA's FFI ask of their caller: errors, scratch memory, threads, futures, numbers.

Each function gets the address of a structure of 8-byte words: its size, its extensions, then arguments and results.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from heron.once import once

_WORD = ctypes.c_uint64
_VERSION = (0, 3)
_UNIMPLEMENTED, _INTERNAL, _OUT_OF_MEMORY = 12, 13, 8

_numbers = itertools.count(1)
_errors: dict[int, tuple[int, str]] = {}
_scratch: dict[int, dict[int, Any]] = {}
_texts: dict[int, Any] = {}


class _Future:
    """The outcome of a handler that continues after its call returned."""

    def __init__(self) -> None:
        self.done, self.error = threading.Event(), 0


_futures: dict[int, _Future] = {}


def _words(address: int, count: int) -> Any:
    return (_WORD * count).from_address(address)


# -- for the caller ----------------------------------------------------------------------------------------------------


@contextmanager
def scratch() -> Iterator[int]:
    """The number of a running call; its scratch memory is freed at its end."""
    number = next(_numbers)
    _scratch[number] = {}
    try:
        yield number
    finally:
        del _scratch[number]


def outcome(future: int) -> int:
    """The error or 0 a handler's future ends with; waits for it. 0 for no future."""
    found = _futures.pop(future, None)
    if found is None:
        return 0
    found.done.wait()
    return found.error


def take_error(error: int) -> tuple[int, str]:
    """Status and message of an error, which is gone then."""
    _texts.pop(error, None)
    return _errors.pop(error, (_INTERNAL, "a handler failed with an error nobody made"))


def new_error(status: int, message: str) -> int:
    """An error's number."""
    number = next(_numbers)
    _errors[number] = (status, message)
    return number


# -- for handlers, in the order of the table ---------------------------------------------------------------------------


def _error_create(at: int) -> int:
    w = _words(at, 4)
    return new_error(w[3] & 0xFFFFFFFF, ctypes.string_at(w[2]).decode(errors="replace"))


def _error_message(at: int) -> int:
    w = _words(at, 4)
    data = _errors.get(w[2], (0, ""))[1].encode()
    _texts[w[2]] = buffer = ctypes.create_string_buffer(data)
    w[3] = ctypes.addressof(buffer)
    return 0


def _error_destroy(at: int) -> int:
    take_error(_words(at, 3)[2])
    return 0


def _refuse(what: str) -> Callable[[int], int]:
    return lambda _: new_error(_UNIMPLEMENTED, f"heron has no {what} for handlers")


def _type_register(at: int) -> int:
    number = (ctypes.c_int64).from_address(_words(at, 5)[4])
    number.value = number.value or next(_numbers)
    return 0


def _memory_allocate(at: int) -> int:
    w = _words(at, 6)
    size, alignment = w[3], max(w[4], 1)
    try:
        block = (ctypes.c_uint8 * (size + alignment))()
    except MemoryError:
        return new_error(_OUT_OF_MEMORY, f"no scratch memory of {size:,} bytes")
    start = ctypes.addressof(block)
    w[5] = start + -start % alignment
    _scratch[w[2]][w[5]] = block
    return 0


def _memory_free(at: int) -> int:
    w = _words(at, 5)
    _scratch[w[2]].pop(w[4], None)
    return 0


def _schedule(at: int) -> int:
    w = _words(at, 5)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(w[3])(w[4])  # the caller's thread does it at once
    return 0


def _threads(at: int) -> int:
    ctypes.c_int64.from_address(_words(at, 4)[3]).value = 1
    return 0


def _future_create(at: int) -> int:
    number = next(_numbers)
    _futures[number] = _Future()
    _words(at, 3)[2] = number
    return 0


def _future_set(at: int) -> int:
    _futures[_words(at, 3)[2]].done.set()
    return 0


def _future_fail(at: int) -> int:
    w = _words(at, 4)
    future = _futures[w[2]]
    future.error = w[3]
    future.done.set()
    return 0


def _run_number(at: int) -> int:
    w = _words(at, 4)
    w[3] = w[2]
    return 0


def _device_number(at: int) -> int:
    ctypes.c_int32.from_address(at + 24).value = 0
    return 0


_FUNCTIONS = (
    *(_error_create, _error_message, _error_destroy, _refuse("registration"), _refuse("stream"), _type_register),
    *(_refuse("user data"), _refuse("state"), _refuse("state"), _memory_allocate, _memory_free),
    *(_schedule, _threads, _future_create, _future_set, _future_fail, _run_number, _device_number),
)
_C = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


def _guarded(function: Callable[[int], int]) -> Callable[[int], int]:
    def call(at: int) -> int:
        try:
            return function(at)
        except Exception as error:  # nothing may cross into native code
            return new_error(_INTERNAL, f"{type(error).__name__}: {error}")

    return call


@once
def _table() -> tuple[Any, list[Any]]:
    functions = [_C(_guarded(f)) for f in _FUNCTIONS]
    addresses = [ctypes.cast(f, ctypes.c_void_p).value or 0 for f in functions]
    head = [8 * (6 + len(functions)), 0, 24, 0, _VERSION[0] | _VERSION[1] << 32, 0]
    return (_WORD * (len(head) + len(addresses)))(*head, *addresses), functions


def address() -> int:
    """The address of the table handlers get."""
    return ctypes.addressof(_table()[0])
