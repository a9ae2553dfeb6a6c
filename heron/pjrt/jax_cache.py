"""JAX's compilation cache (`jax_compilation_cache_dir`) for programs of heron, as for those of JAX's CPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from heron.pjrt.device import PLATFORM

#: JAX keeps programs of the platforms it has a list of; a program's key has the platform's name and version in it
_KNOWN = SimpleNamespace(platform="cpu", supports_executable_serialization=True)


def install() -> None:
    """Let JAX's cache keep programs of heron."""
    from jax._src import compilation_cache

    is_used = compilation_cache.is_cache_used

    def is_cache_used(backend: Any) -> bool:
        return is_used(_KNOWN if backend.platform == PLATFORM else backend)

    compilation_cache.is_cache_used = is_cache_used
