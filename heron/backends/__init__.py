"""Backends: for each kind of machine its pipeline and how its programs are built. `compile` is the way in."""

from __future__ import annotations

from heron.backends.compiler import STAGES, Compilation, compile

__all__ = ["STAGES", "Compilation", "compile"]
