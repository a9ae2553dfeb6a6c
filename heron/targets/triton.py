"""Finds Triton, which compiles block kernels."""

from __future__ import annotations

from functools import cache
from importlib import metadata

#: versions whose spelling of the ops `codegen/ir/dialects/triton.py` has
VERSIONS = ("3.6", "3.7", "3.8", "3.9")


@cache
def missing() -> str:
    """The reason why Triton cannot be used on this machine; empty if it can. This does not import Triton."""
    try:
        version = metadata.version("triton")
    except metadata.PackageNotFoundError:
        return "Triton is not installed (pip install triton)"
    return "" if version.startswith(VERSIONS) else f"Triton {version} is none of {', '.join(VERSIONS)}"
