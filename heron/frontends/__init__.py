"""Programs from outside: StableHLO text and bytecode, JAX functions, and `load`, which takes any form there is."""

from __future__ import annotations

from heron.frontends.loading import from_bytes, load

__all__ = ["from_bytes", "load"]
