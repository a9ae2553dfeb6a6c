"""Memory for large outputs: ordinary NumPy arrays whose memory, once freed, serves the next output of that size.

Fresh memory of the operating system costs as much time as the kernel that fills it: every page is zeroed first. NumPy
lets an array be made with an allocator of one's own (NEP 49), which `empty` uses for large arrays. Such an array owns
its memory like any other; only, when it dies, a few blocks are kept. The system may take a kept block's pages back when
it is short of memory (MADV_FREE). Blocks are aligned, and asked for in huge pages.

The allocator is native code, since arrays may die when Python no longer runs, and is never unloaded.
Source: https://numpy.org/neps/nep-0049.html, https://numpy.org/doc/stable/reference/c-api/data_memory.html
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from heron.errors import HeronError
from heron.once import once
from heron.runtime import compiled, numpy_api

#: bytes from which on an array is worth it
LARGE = 1 << 20
#: how many freed blocks are kept
BLOCKS = 128

#: the native helper, and its functions in the order of NumPy's structure: ``malloc``, ``calloc``, ``realloc``, ``free``
HELPER = "array pool"
FUNCTIONS = ("heron_mem_new", "heron_mem_new_zero", "heron_mem_resize", "heron_mem_free")


class Block(ctypes.Structure):
    """A freed block: its address (0: none) and its bytes."""

    _fields_ = [("address", ctypes.c_void_p), ("bytes", ctypes.c_int64)]


class State(ctypes.Structure):
    """The freed blocks of a process. ``in_use``: 1 while a thread is at them; ``kept``: the bytes of all;
    ``turn``: the place the next one gets."""

    _fields_ = [
        ("in_use", ctypes.c_int64),
        ("kept", ctypes.c_int64),
        ("turn", ctypes.c_int64),
        ("blocks", Block * BLOCKS),
    ]


def empty(dims: tuple[int, ...], dtype: np.dtype, what: str = "an array") -> np.ndarray:
    """An uninitialised C-contiguous array of any size. Raises RUN010, which names it, when memory is short."""
    size = prod(dims) * dtype.itemsize
    try:
        swap = _handler_swap() if size >= LARGE else None
        own = None if swap is None else _handler()
        if swap is None or own is None:
            return np.empty(dims, dtype)
        usual = swap(own)
        try:
            return np.empty(dims, dtype)
        finally:
            swap(usual)
    except (MemoryError, ValueError) as e:  # ValueError: more bytes than addresses
        raise no_memory(what, size) from e


def copy(array: np.ndarray, what: str = "a copy") -> np.ndarray:
    """A C-contiguous copy. Raises RUN010, which names it, when memory is short."""
    made = empty(array.shape, array.dtype, what)
    made[...] = array
    return made


def no_memory(what: str, size: int) -> HeronError:
    """The error of memory that the system has not got."""
    return HeronError(
        "RUN010",
        f"no memory for {what}: {size:,} bytes",
        hint="`heron mem` shows what a program needs, and what would lower it",
    )


def handler() -> Any:
    """The allocator as the capsule `PyDataMem_SetHandler` takes; None where there is none."""
    return None if _handler_swap() is None else _handler()


# -- NumPy's side ------------------------------------------------------------------------------------------------------


class _Handler(ctypes.Structure):
    """NumPy's ``PyDataMem_Handler``."""

    _fields_ = [
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("ctx", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    ]


@once
def _handler_swap() -> Callable[[Any], Any] | None:
    """``PyDataMem_SetHandler``: sets the allocator of the calling context, gives the one before. None: not here."""
    if platform.system() != "Linux":
        return None
    address = numpy_api.function(numpy_api.SET_HANDLER)
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(address) if address else None


@once
def _handler() -> Any:
    """The allocator as the capsule NumPy wants; None where nobody compiles it."""
    code = compiled.functions(HELPER)
    if code is None:
        return None
    made = _Handler(b"heron", 1, ctypes.addressof(state()), *(code[name] for name in FUNCTIONS))
    for lasting in (made, state()):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(lasting))  # for as long as the process lives
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.addressof(made), _CAPSULE, None)


_CAPSULE = b"mem_handler"


@once
def state() -> State:
    """The blocks that wait for a next use, of this process."""
    return State()


def _forget() -> None:
    state().in_use = 0  # whoever had it in use is not in the forked child


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
