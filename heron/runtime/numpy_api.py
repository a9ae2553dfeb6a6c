"""NumPy's C interface, for native code that takes and makes arrays: a table of addresses, and how an array is laid out.

Source: https://numpy.org/doc/stable/reference/c-api/array.html, https://numpy.org/doc/stable/reference/c-api/types-and-structures.html
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

import numpy as np

#: places in the table: ``PyArray_Empty(int nd, intp *dims, descr (stolen), int fortran)``, `PyDataMem_SetHandler`
EMPTY, SET_HANDLER = 184, 304

#: bytes from an array object's address: its type, then data, int rank, dimensions, dtype, int flags
TYPE, DATA, RANK, DIMS, DTYPE, FLAGS = 8, 16, 24, 32, 56, 64
C_CONTIGUOUS, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400


@cache
def function(place: int) -> int | None:
    """The address of a function of NumPy's C interface; None where there is none."""
    from numpy._core import _multiarray_umath  # pyright: ignore[reportAttributeAccessIssue]

    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = ctypes.cast(pointer(_multiarray_umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    return table[place]


@cache
def known_layout() -> bool:
    """Whether arrays lie in memory as this file says, by a look at one: not so in unusual builds of Python."""
    if sys.implementation.name != "cpython" or object.__basicsize__ != DATA or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    probe = np.zeros((3, 5), np.float32)[1:]

    def word(offset: int, kind: Any = ctypes.c_int64) -> int:
        return kind.from_address(id(probe) + offset).value

    dims = (ctypes.c_int64 * 2).from_address(word(DIMS))
    return (
        word(TYPE) == id(np.ndarray)
        and word(DATA) == probe.ctypes.data
        and word(RANK, ctypes.c_int32) == 2
        and tuple(dims) == (2, 5)
        and word(DTYPE) == id(probe.dtype)
        and word(FLAGS, ctypes.c_int32) & 0xFFF == probe.flags.num & 0xFFF
        and probe.flags.num & (C_CONTIGUOUS | ALIGNED | WRITEABLE) == C_CONTIGUOUS | ALIGNED | WRITEABLE
    )
