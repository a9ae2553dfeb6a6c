"""Whether Triton is here, which makes machine code of block kernels."""

from __future__ import annotations

from functools import cache
from importlib import metadata

#: versions whose spelling of the ops `codegen/ir/dialects/triton.py` has
VERSIONS = ("3.6", "3.7", "3.8", "3.9")


@cache
def missing() -> str:
    """Why Triton cannot be used on this machine; empty when it can. Triton is not imported for that."""
    try:
        version = metadata.version("triton")
    except metadata.PackageNotFoundError:
        return "Triton is not installed (pip install triton)"
    return "" if version.startswith(VERSIONS) else f"Triton {version} is none of {', '.join(VERSIONS)}"
