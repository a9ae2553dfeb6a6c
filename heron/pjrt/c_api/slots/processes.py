"""Several processes of one job: each hears what the others say of themselves, through a store of keys and values."""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

from heron.errors import HeronError
from heron.once import once
from heron.pjrt.c_api import abi, errors, handles
from heron.pjrt.job import Job, own_word

_PTR, _SIZE = ctypes.c_void_p, ctypes.c_size_t
#: milliseconds a process waits for another one to come up
_PATIENCE = 300_000


def meet(args: Any, own: int, count: int, devices: int) -> Job:
    """The processes, when all have told of themselves.

    Args:
        args: of `PJRT_Client_Create`, with the store's callbacks.
        own: this process, of `count`. `devices`: how many it has.

    Raises PJRT028 when there is no store, and what the store says when a process does not come.
    """
    if not (args.kv_get_callback and args.kv_put_callback):
        raise HeronError(
            "PJRT028",
            f"process {own} of {count} cannot find the others",
            why="the client was made without a store of keys and values",
            hint="jax.distributed.initialize() gives one",
        )
    turn = next(_TURNS)
    word = own_word(devices)
    _put(args, _key(turn, own), word)
    job = Job.of([word if n == own else _get(args, _key(turn, n)) for n in range(count)])
    job.meet()
    return job


#: clients of a process that met others: all processes make theirs in the same order, and a key has one value
_TURNS = itertools.count()


def _key(turn: int, process: int) -> str:
    return f"heron:{turn}:process:{process}"


def _put(args: Any, key: str, value: str) -> None:
    asked: Any = abi.struct("PJRT_KeyValuePutCallback_Args")()
    keep_key, asked.key, asked.key_size = handles.text(key)
    keep_value, asked.value, asked.value_size = handles.text(value)
    _call(args.kv_put_callback, asked, args.kv_put_user_arg)
    del keep_key, keep_value


def _get(args: Any, key: str) -> str:
    """The value, waited for."""
    asked: Any = abi.struct("PJRT_KeyValueGetCallback_Args")()
    keep_key, asked.key, asked.key_size = handles.text(key)
    asked.timeout_in_ms = _PATIENCE
    _call(args.kv_get_callback, asked, args.kv_get_user_arg)
    del keep_key
    value = handles.read_text(asked.value, asked.value_size).decode()
    if asked.value_deleter_callback:
        ctypes.CFUNCTYPE(None, _PTR)(asked.value_deleter_callback)(asked.value)
    return value


def _call(function: int, asked: Any, user: int) -> None:
    asked.struct_size = ctypes.sizeof(asked)
    asked.callback_error, asked.user_arg = _make_error()[1], user
    error = ctypes.CFUNCTYPE(_PTR, _PTR)(function)(ctypes.addressof(asked))
    if error:
        raise errors.take(error)


@once
def _make_error() -> tuple[Any, int]:
    """The constructor of a callback's errors: a pointer to a function's address, and objects to keep alive."""

    def new(code: int, message: int, size: int) -> int:
        return errors.new_error(code, handles.read_text(message, size).decode(errors="replace"))

    native = ctypes.CFUNCTYPE(_PTR, ctypes.c_int, _PTR, _SIZE)(new)
    place = _PTR(ctypes.cast(native, _PTR).value)
    return (native, place), ctypes.addressof(place)
