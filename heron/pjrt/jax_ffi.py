"""Custom calls of JAX programs: handlers registered with `jax.ffi` for the platform heron, else those for "cpu"."""

from __future__ import annotations

import ctypes
from typing import Any

from heron.errors import HeronError
from heron.once import once
from heron.pjrt.device import PLATFORM
from heron.runtime.host import ffi

#: the version of custom calls whose handlers take a call frame
_TYPED = 1


def install() -> None:
    """Let programs find handlers JAX knows of."""
    from jaxlib import xla_client

    xla_client.register_custom_call_handler(PLATFORM, _register)
    if _of_cpu not in ffi.finders:
        ffi.finders.append(_of_cpu)


def _register(name: Any, function: Any, platform: str, api_version: int = 0, traits: Any = 0) -> None:
    """Called by JAX for `jax.ffi.register_ffi_target(name, function, platform="heron")`."""
    del platform, traits
    if api_version != _TYPED:
        raise HeronError(
            "PJRT022", f"the handler '{_text(name)}' has API version {api_version}", hint="use the typed FFI, version 1"
        )
    ffi.register(_text(name), _address(function))


def _of_cpu(name: str) -> int | None:
    """A handler JAX's CPU has; JAX registers those of LAPACK when its CPU comes up."""
    from jaxlib import xla_client

    found = xla_client.custom_call_targets("cpu").get(name)
    if found is None or not isinstance(found, dict):
        return None
    if name.startswith("lapack_"):
        _look_lapack_up()
    return _address(found)


@once
def _look_lapack_up() -> None:
    """jaxlib's handlers call the LAPACK that SciPy ships."""
    from jaxlib import lapack

    lapack._lapack.initialize()  # pyright: ignore[reportPrivateImportUsage]


def _address(function: Any) -> int:
    capsule = function["execute"] if isinstance(function, dict) else function
    name_of, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return pointer(capsule, name_of(capsule))


def _text(name: Any) -> str:
    return name.decode() if isinstance(name, bytes) else str(name)
