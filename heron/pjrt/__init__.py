"""PJRT in plain Python: what a framework needs of a device runtime, by the names PJRT gives it.

A `Client` has `Device`s with `Memory`s, compiles programs to `LoadedExecutable`s and runs them on `Buffer`s. Work may
be under way when a call returns: `Event`s say when it is done, or with which error.

    >>> import numpy as np
    >>> from heron import pjrt
    >>> client = pjrt.Client("cpu")
    >>> add = client.compile('''HloModule add
    ... ENTRY e {
    ...   x = f32[3]{0} parameter(0)
    ...   ROOT y = f32[3]{0} add(x, x)
    ... }''')
    >>> x = client.buffer_from_host(np.array([1, 2, 3], np.float32))
    >>> [y] = add.execute([x])
    >>> np.asarray(y)
    array([2., 4., 6.], dtype=float32)

`heron.pjrt.c_api` offers the same as PJRT's C structures, `heron.pjrt.jax_plugin` registers that with JAX.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heron.pjrt.buffer import Buffer
    from heron.pjrt.client import Client
    from heron.pjrt.compile_options import CompileOptions
    from heron.pjrt.device import Device, Memory, Topology
    from heron.pjrt.event import Event
    from heron.pjrt.loaded import ExecuteOptions, LoadedExecutable

__all__ = [
    "Buffer",
    "Client",
    "CompileOptions",
    "Device",
    "Event",
    "ExecuteOptions",
    "LoadedExecutable",
    "Memory",
    "Topology",
]

_HOMES = {
    "Buffer": "buffer",
    "Client": "client",
    "CompileOptions": "compile_options",
    "Device": "device",
    "Event": "event",
    "ExecuteOptions": "loaded",
    "LoadedExecutable": "loaded",
    "Memory": "device",
    "Topology": "device",
}


def __getattr__(name: str) -> object:
    """Names are loaded on first use: JAX loads the plugin in each of its processes, for other platforms too."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
