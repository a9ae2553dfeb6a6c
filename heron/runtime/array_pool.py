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

from heron.codegen.llvm.declarations import declared
from heron.errors import HeronError
from heron.once import once
from heron.runtime import numpy_api

#: bytes from which on an array is worth it
LARGE = 1 << 20
#: how many freed blocks are kept, and the part of the machine's memory they may take
_BLOCKS = 128
_SHARE = 8

_HUGE_PAGE = 1 << 21
_MADV_FREE, _MADV_HUGEPAGE = 8, 14


def empty(dims: tuple[int, ...], dtype: np.dtype, what: str = "an array") -> np.ndarray:
    """An uninitialised C-contiguous array of any size. Raises RUN010, which names it, when memory is short."""
    size = prod(dims) * dtype.itemsize
    try:
        swap = _handler_swap() if size >= LARGE else None
        if swap is None:
            return np.empty(dims, dtype)
        usual = swap(_handler())
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


def kept_bytes() -> int:
    """Bytes of the blocks that wait for a next use."""
    return ctypes.c_int64.from_buffer(_state(), 8).value


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
    """The allocator as the capsule NumPy wants."""
    from heron.codegen.llvm.jit import Jit

    limit = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // _SHARE
    jit = Jit(level=0)  # straight code already: the optimiser takes longer than it will ever save
    code = jit.add(_text(limit), "recycle")
    made = _Handler(b"heron", 1, ctypes.addressof(_state()), *(code.addresses[f"heron_mem_{n}"] for n in _FUNCTIONS))
    for lasting in (jit, code, made, _state()):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(lasting))  # for as long as the process lives
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.addressof(made), _CAPSULE, None)


_CAPSULE = b"mem_handler"
_FUNCTIONS = ("new", "new_zero", "resize", "free")


@once
def _state() -> Any:
    """i64 in use, i64 bytes kept, i64 next place, then (address, size) of the blocks kept."""
    return (ctypes.c_int64 * (3 + 2 * _BLOCKS))()


def _forget() -> None:
    _state()[0] = 0  # whoever had it in use is not in the forked child


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


# -- the native side ---------------------------------------------------------------------------------------------------


_EXTERNALS = declared(
    "i32 @posix_memalign(ptr, i64, i64)",
    "ptr @calloc(i64, i64)",
    "ptr @realloc(ptr, i64)",
    "void @free(ptr)",
    "i32 @madvise(ptr, i64, i32)",
)


def _text(limit: int) -> str:
    """LLVM text of the allocator. Whoever finds the table in use goes without it, so nobody ever waits."""
    return f"""
%State = type {{ i64, i64, i64, [{_BLOCKS} x %Block] }}
%Block = type {{ ptr, i64 }}

{_EXTERNALS}

define ptr @heron_mem_new(ptr %state, i64 %size) nounwind {{
entry:
  %place = alloca ptr
  %kept_at = getelementptr %State, ptr %state, i32 0, i32 1
  %exchange = cmpxchg ptr %state, i64 0, i64 1 acquire monotonic
  %mine = extractvalue {{ i64, i1 }} %exchange, 1
  br i1 %mine, label %look, label %fresh

look:
  %n = phi i64 [ 0, %entry ], [ %next, %other ]
  %address_at = getelementptr %State, ptr %state, i32 0, i32 3, i64 %n
  %size_at = getelementptr %Block, ptr %address_at, i32 0, i32 1
  %address = load ptr, ptr %address_at
  %bytes = load i64, ptr %size_at
  %there = icmp ne ptr %address, null
  %fits = icmp eq i64 %bytes, %size
  %good = and i1 %there, %fits
  br i1 %good, label %take, label %other

other:
  %next = add i64 %n, 1
  %end = icmp eq i64 %next, {_BLOCKS}
  br i1 %end, label %none, label %look

take:
  store ptr null, ptr %address_at
  store i64 0, ptr %size_at
  %kept = load i64, ptr %kept_at
  %less = sub i64 %kept, %size
  store i64 %less, ptr %kept_at
  store atomic i64 0, ptr %state release, align 8
  ret ptr %address

none:
  store atomic i64 0, ptr %state release, align 8
  br label %fresh

fresh:
  %large = icmp uge i64 %size, {2 * _HUGE_PAGE}
  %alignment = select i1 %large, i64 {_HUGE_PAGE}, i64 64
  %failed = call i32 @posix_memalign(ptr %place, i64 %alignment, i64 %size)
  %no = icmp ne i32 %failed, 0
  br i1 %no, label %short, label %got

short:
  ret ptr null

got:
  %made = load ptr, ptr %place
  br i1 %large, label %advise, label %done

advise:
  %pages = and i64 %size, {-_HUGE_PAGE}
  call i32 @madvise(ptr %made, i64 %pages, i32 {_MADV_HUGEPAGE})
  br label %done

done:
  ret ptr %made
}}

define void @heron_mem_free(ptr %state, ptr %block, i64 %size) nounwind {{
entry:
  %kept_at = getelementptr %State, ptr %state, i32 0, i32 1
  %turn_at = getelementptr %State, ptr %state, i32 0, i32 2
  %small = icmp ult i64 %size, {LARGE}
  br i1 %small, label %away, label %try

try:
  %exchange = cmpxchg ptr %state, i64 0, i64 1 acquire monotonic
  %mine = extractvalue {{ i64, i1 }} %exchange, 1
  br i1 %mine, label %keep, label %away

keep: ; a ring: the block takes the place of the one kept longest, and others go until the rest is not too much
  %turn0 = load i64, ptr %turn_at
  %whole = and i64 %size, {-_HUGE_PAGE}
  %large = icmp uge i64 %size, {2 * _HUGE_PAGE}
  br i1 %large, label %offer, label %place

offer:
  call i32 @madvise(ptr %block, i64 %whole, i32 {_MADV_FREE})
  br label %place

place:
  br label %put

put:
  %turn = phi i64 [ %turn0, %place ], [ %next, %put ]
  %new = phi ptr [ %block, %place ], [ null, %put ]
  %new_size = phi i64 [ %size, %place ], [ 0, %put ]
  %address_at = getelementptr %State, ptr %state, i32 0, i32 3, i64 %turn
  %size_at = getelementptr %Block, ptr %address_at, i32 0, i32 1
  %old = load ptr, ptr %address_at
  %old_size = load i64, ptr %size_at
  store i64 %new_size, ptr %size_at
  store ptr %new, ptr %address_at
  call void @free(ptr %old)
  %kept0 = load i64, ptr %kept_at
  %kept1 = add i64 %kept0, %new_size
  %kept = sub i64 %kept1, %old_size
  store i64 %kept, ptr %kept_at
  %up = add i64 %turn, 1
  %next = urem i64 %up, {_BLOCKS}
  %full = icmp ugt i64 %kept, {limit}
  br i1 %full, label %put, label %done

done:
  store i64 %next, ptr %turn_at
  store atomic i64 0, ptr %state release, align 8
  ret void

away:
  call void @free(ptr %block)
  ret void
}}

define ptr @heron_mem_new_zero(ptr %state, i64 %count, i64 %size) nounwind {{
  %made = call ptr @calloc(i64 %count, i64 %size)
  ret ptr %made
}}

define ptr @heron_mem_resize(ptr %state, ptr %block, i64 %size) nounwind {{
  %made = call ptr @realloc(ptr %block, i64 %size)
  ret ptr %made
}}
"""
