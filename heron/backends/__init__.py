"""Backends: for each kind of machine its pipeline and how its programs are built. `compile` is the way in.

Names are loaded on first use: a program that comes whole from a file needs no compiler.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heron.backends.compiler import STAGES, Compilation, compile

__all__ = ["STAGES", "Compilation", "compile"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'heron.backends' has no attribute '{name}'")
    value = getattr(importlib.import_module("heron.backends.compiler"), name)
    globals()[name] = value
    return value
