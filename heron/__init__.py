"""heron: a tensor compiler you can read.

``heron.parse(text)`` gives a `Module`, ``heron.evaluate(module, *arrays)`` its meaning by NumPy, and
``heron.compile(module, target="cpu")`` an executable, callable on NumPy arrays. ``heron.save`` keeps it in a file.
Names are loaded on first use, so that ``import heron`` costs next to nothing.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

__version__ = "0.1.0"

__all__ = [
    "HeronError",
    "Module",
    "Options",
    "compile",
    "evaluate",
    "evaluate_devices",
    "from_jax",
    "jit",
    "load",
    "parse",
    "rewrite",
    "save",
]

if TYPE_CHECKING:
    from heron.archive import load, save
    from heron.compiling import compile
    from heron.errors import HeronError
    from heron.evaluator import evaluate, evaluate_devices
    from heron.frontends.jax import from_jax
    from heron.hlo.ir.module import Module
    from heron.hlo.text import parse
    from heron.jitting import jit
    from heron.options import Options
    from heron.passes.framework.loading import rewrite

_HOMES = {
    "HeronError": "heron.errors",
    "Module": "heron.hlo.ir.module",
    "Options": "heron.options",
    "compile": "heron.compiling",
    "evaluate": "heron.evaluator",
    "evaluate_devices": "heron.evaluator",
    "from_jax": "heron.frontends.jax",
    "jit": "heron.jitting",
    "load": "heron.archive",
    "parse": "heron.hlo.text",
    "rewrite": "heron.passes.framework.loading",
    "save": "heron.archive",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'heron' has no attribute '{name}'")
    from heron.collector import collector_paused

    with collector_paused():
        value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])


if "IPython" in sys.modules:  # a notebook, or a shell like one
    importlib.import_module("heron.notebook").register()
