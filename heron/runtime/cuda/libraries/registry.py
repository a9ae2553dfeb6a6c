"""The libraries by name."""

from __future__ import annotations

import importlib

from heron.errors import HeronError
from heron.runtime.cuda.libraries.base import Library, Workspace

#: where each one's class is
LIBRARIES: dict[str, tuple[str, str]] = {
    "cublas": ("cublas", "CuBlas"),
    "cublaslt": ("cublaslt", "CublasLt"),
    "cudnn": ("cudnn", "CuDnn"),
    "cufft": ("cufft", "CuFft"),
    "cusolver": ("cusolver", "CuSolver"),
}


def open_library(name: str, workspace: Workspace | None = None) -> Library:
    """Load a library and make what its calls need, on the current CUDA context.

    Raises RUN090 when it is not on this machine, RUN094 for a name that none has.
    """
    if name not in LIBRARIES:
        raise HeronError("RUN094", f"there is no library '{name}'", hint="one of " + ", ".join(LIBRARIES))
    module, cls = LIBRARIES[name]
    return getattr(importlib.import_module(f"heron.runtime.cuda.libraries.{module}"), cls)(workspace)
