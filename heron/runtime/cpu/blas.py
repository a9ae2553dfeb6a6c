"""The BLAS and LAPACK that SciPy ships (OpenBLAS), as native function addresses.

`scipy.linalg.cython_blas` and `cython_lapack` publish their Fortran-ABI entry points as PyCapsules; the address inside
can be called from compiled code with no Python in between. All arguments are pointers, integers are 32 bits wide.
Source: https://docs.scipy.org/doc/scipy/reference/linalg.cython_blas.html
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

from heron.errors import HeronError
from heron.hlo.ir.types import C64, C128, F32, F64, ElementType
from heron.hlo.meaning.scipy_part import scipy_extension
from heron.once import once

#: element type → BLAS prefix
PREFIX: dict[ElementType, str] = {F32: "s", F64: "d", C64: "c", C128: "z"}
LIMIT = 2**31 - 1
#: the exponent of the cycles an idle OpenBLAS thread stays awake
_PATIENCE = "OPENBLAS_THREAD_TIMEOUT"


@once
def _routines() -> dict[str, Any]:
    """SciPy's table of BLAS routines.

    OpenBLAS's threads look for more work for 2**26 cycles after each product, on the CPUs our own threads want. They
    are told to give up earlier, which is possible only while the library is being loaded.
    """
    unset = _PATIENCE not in os.environ
    if unset:
        os.environ[_PATIENCE] = "15"
    try:
        cython_blas = scipy_extension("linalg", "cython_blas")
    finally:
        if unset:
            del os.environ[_PATIENCE]
    return cython_blas.__pyx_capi__


@once
def why_not() -> str:
    """Why there are no routines to call; nothing where there are."""
    try:
        _routines()
    except (HeronError, AttributeError) as error:
        return (error.why or error.what) if isinstance(error, HeronError) else str(error)
    return ""


@once
def address(routine: str) -> int:
    """The address of a BLAS routine, e.g. ``"sgemm"``. Raises RUN020 when SciPy has no such routine."""
    return _inside(_routines().get(routine), "BLAS", routine)


@once
def lapack_address(routine: str) -> int:
    """The address of a LAPACK routine, or of one of BLAS. Raises RUN020 when SciPy has no such routine."""
    of_blas = _routines().get(routine)  # first: it says how long threads stay awake
    found = of_blas or scipy_extension("linalg", "cython_lapack").__pyx_capi__.get(routine)
    return _inside(found, "LAPACK", routine)


def _inside(capsule: Any, library: str, routine: str) -> int:
    if capsule is None:
        raise HeronError("RUN020", f"SciPy's {library} has no '{routine}'", hint="upgrade scipy")
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))
