"""The `PJRT_Api` structure itself."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from heron.once import once
from heron.pjrt.c_api import abi, native
from heron.pjrt.c_api.slot import callable_of
from heron.pjrt.c_api.slots import (  # noqa: F401  they file their functions
    buffers,
    clients,
    events,
    executables,
    later,
    layouts,
    quick,
    shardings,
    topologies,
    transfers,
)

#: the name PJRT gives the capsule its structure travels in
_CAPSULE = b"pjrt_c_api"


@once
def address() -> int:
    """The address of heron's `PJRT_Api`, which lives as long as the process."""
    names = native.slots()
    native.bind({name: callable_of(name) for name in names}, names)
    quick.set_up()
    api: Any = abi.struct("PJRT_Api")()
    api.struct_size = ctypes.sizeof(api)
    version = api.pjrt_api_version
    version.struct_size = ctypes.sizeof(version)
    version.major_version, version.minor_version = abi.version()
    for name in abi.functions():
        setattr(api, name, native.entry(name))
    extensions: list[Any] = []
    for name, functions in reversed(abi.EXTENSIONS.items()):
        extensions.append(_extension(name, functions, ctypes.addressof(extensions[-1]) if extensions else 0))
    api.extension_start = ctypes.addressof(extensions[-1])
    for lasting in (api, *extensions):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(lasting))
    return ctypes.addressof(api)


@contextmanager
def layouts_hidden() -> Iterator[None]:
    """For a client that is made meanwhile, buffers lie row-major: it does not ask each of them for its layout, and
    parse the text of the answer, before NumPy gets at it. Arrays in another order are copied out (`slots/buffers.py`).

    Programs are asked as ever: whoever asks them looks the extension up then.
    """
    api: Any = abi.struct("PJRT_Api").from_address(address())
    shown, api.extension_start = api.extension_start, 0
    try:
        yield
    finally:
        api.extension_start = shown


def capsule() -> Any:
    """A PyCapsule of the structure."""
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(address(), _CAPSULE, None)


def _extension(name: str, functions: Sequence[str], following: int) -> Any:
    """The structure of an extension with its functions; `following` is the address of the next one."""
    extension = (ctypes.c_uint64 * (3 + len(functions)))()
    extension[0], extension[1], extension[2] = ctypes.sizeof(extension), abi.extension_type(name), following
    extension[3:] = [native.entry(f) for f in functions]
    return extension
