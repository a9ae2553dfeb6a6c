"""Programs from outside: StableHLO text and bytecode, JAX functions, and `load`, which reads any of the forms."""

from __future__ import annotations

from heron.frontends.loading import from_bytes, load

__all__ = ["from_bytes", "load"]
