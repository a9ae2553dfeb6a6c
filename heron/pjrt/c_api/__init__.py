"""PJRT's C interface to `heron.pjrt`: a `PJRT_Api` structure any framework that speaks PJRT can use.

    >>> from heron.pjrt import c_api
    >>> capsule = c_api.capsule()        # what jax's `register_plugin(c_api=…)` takes

Nothing is compiled with a C compiler: the structures are ctypes', their layout is data (`abi.py`), and what must be
native code is LLVM text (`native.py`): entry points that take Python's lock and keep a pending exception, and getters
that need no Python at all.
"""

from __future__ import annotations

from heron.pjrt.c_api.api import address, capsule

__all__ = ["address", "capsule"]
