"""NumPy's C interface, for native code that takes and makes arrays: a table of addresses, and how an array is laid out.

Source: https://numpy.org/doc/stable/reference/c-api/array.html, https://numpy.org/doc/stable/reference/c-api/types-and-structures.html
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache

import numpy as np

#: places in the table: ``PyArray_Empty(int nd, intp *dims, descr (stolen), int fortran)``, `PyDataMem_SetHandler`
EMPTY, SET_HANDLER = 184, 304


class Array(ctypes.Structure):
    """An array object as it lies in memory; see `known_layout`."""

    _fields_ = [
        ("references", ctypes.c_int64),
        ("type", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int32),
        ("dims", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("base", ctypes.c_void_p),
        ("dtype", ctypes.c_void_p),
        ("flags", ctypes.c_int32),
    ]


#: flags of arrays
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
    if (
        sys.implementation.name != "cpython"
        or object.__basicsize__ != Array.data.offset
        or ctypes.sizeof(ctypes.c_void_p) != 8
    ):
        return False
    probe = np.zeros((3, 5), np.float32)[1:]
    found = Array.from_address(id(probe))
    needed = C_CONTIGUOUS | ALIGNED | WRITEABLE
    return (
        found.type == id(np.ndarray)
        and found.data == probe.ctypes.data
        and found.rank == 2
        and tuple((ctypes.c_int64 * 2).from_address(found.dims)) == (2, 5)
        and found.dtype == id(probe.dtype)
        and found.flags & 0xFFF == probe.flags.num & 0xFFF
        and probe.flags.num & needed == needed
    )
