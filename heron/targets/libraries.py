"""NVIDIA's shared libraries on this machine: their folders, and whether they can be loaded."""

from __future__ import annotations

import ctypes
import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path

from heron.once import once

#: the file name of each library, with the versions whose interface is known, newest first
FILES: Mapping[str, tuple[str, tuple[int, ...]]] = {
    "cublas": ("cublas", (13, 12)),
    "cublaslt": ("cublasLt", (13, 12)),
    "cudnn": ("cudnn", (9,)),
    "cusolver": ("cusolver", (12, 11)),
    "cufft": ("cufft", (12, 11)),
    "nccl": ("nccl", (2,)),
    "cuda": ("cuda", (1,)),  # the driver
}


def missing(name: str) -> str | None:
    """The reason why the library cannot be loaded on this machine; None if it can."""
    found = load(name)
    return found if isinstance(found, str) else None


@once
def load(name: str) -> ctypes.CDLL | str:
    """The library, or the reason why it cannot be loaded."""
    stem, versions = FILES[name]
    files = [f"lib{stem}.so.{v}" for v in versions]
    tried = ""
    for place in [*(str(folder / f) for f in files for folder in _folders() if (folder / f).exists()), *files]:
        try:
            return ctypes.CDLL(place)
        except OSError as error:
            tried = tried or str(error)
    return tried


def _folders() -> list[Path]:
    """The folders that may hold libraries: of the toolkit that the environment names, then of NVIDIA's wheels."""
    roots = [Path(root) / "lib64" for v in ("CUDA_HOME", "CUDA_PATH") if (root := os.environ.get(v))]
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        roots += sorted(Path(folder).glob("*/lib"))
    return roots
