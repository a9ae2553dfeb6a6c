"""Matrix products by the BLAS that SciPy ships (OpenBLAS), as native function addresses.

`scipy.linalg.cython_blas` publishes its Fortran-ABI entry points as PyCapsules; the address inside can be called from
compiled code with no Python in between. All arguments are pointers, integers are 32 bits wide.
Source: https://docs.scipy.org/doc/scipy/reference/linalg.cython_blas.html
"""

from __future__ import annotations

import ctypes
from functools import cache

from heron.errors import HeronError
from heron.hlo.types import C64, C128, F32, F64, ElementType

#: element type → BLAS prefix
PREFIX: dict[ElementType, str] = {F32: "s", F64: "d", C64: "c", C128: "z"}
LIMIT = 2**31 - 1


@cache
def address(routine: str) -> int:
    """The address of a BLAS routine, e.g. ``"sgemm"``. Raises RUN020 when SciPy has no such routine."""
    from scipy.linalg import cython_blas  # pyright: ignore[reportAttributeAccessIssue]

    capsule = cython_blas.__pyx_capi__.get(routine)
    if capsule is None:
        raise HeronError("RUN020", f"SciPy's BLAS has no '{routine}'", hint="upgrade scipy")
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))
