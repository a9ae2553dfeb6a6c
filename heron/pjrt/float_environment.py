"""The floating-point environment of a thread. JAX compiles on threads that take denormals for zero, and a thread begins
with the environment of the one that started it: constants of a program would become 0."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from heron.once import once


def reset() -> None:
    """Give the calling thread the usual environment: denormals count, rounding to nearest."""
    function, default = _function()
    if function is not None:
        function(default)


@once
def _function() -> tuple[Any, Any]:
    """C's `fesetenv` and its default environment; None where the C library has none by that name."""
    library = ctypes.CDLL(None)
    try:
        if sys.platform == "darwin":
            return library.fesetenv, ctypes.byref(ctypes.c_char.in_dll(library, "_FE_DFL_ENV"))
        return library.fesetenv, ctypes.c_void_p(-1)
    except (AttributeError, ValueError):
        return None, None
