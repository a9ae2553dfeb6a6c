"""NVIDIA's own tools, where they are installed: nvJitLink and ptxas assemble PTX, nvdisasm prints machine code."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
from functools import cache
from pathlib import Path


def _roots(folder: str) -> list[Path]:
    """That folder of the CUDA toolkits the environment names."""
    return [Path(root) / folder for v in ("CUDA_HOME", "CUDA_PATH") if (root := os.environ.get(v))]


def _wheel_files(*patterns: str) -> list[Path]:
    spec = importlib.util.find_spec("nvidia")
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    return [path for folder in folders for pattern in patterns for path in sorted(Path(folder).glob(pattern))]


@cache
def find_nvjitlink() -> ctypes.CDLL | None:
    """The nvJitLink library, from CUDA_HOME, NVIDIA's wheel or the loader's path; None when absent."""
    found = [p for root in _roots("lib64") for p in sorted(root.glob("libnvJitLink.so*"))]
    found += _wheel_files("*/lib/libnvJitLink.so*", "*/bin/nvJitLink*.dll")
    for name in [*map(str, found), "libnvJitLink.so.13", "libnvJitLink.so.12"]:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


@cache
def find_ptxas() -> str | None:
    """The ptxas program: ``HERON_PTXAS``, CUDA_HOME, NVIDIA's wheel, PATH, Triton's; None when absent."""
    return os.environ.get("HERON_PTXAS") or _program("ptxas")


@cache
def find_nvdisasm() -> str | None:
    """The nvdisasm program: CUDA_HOME, NVIDIA's wheel, PATH, Triton's; None when absent."""
    return _program("nvdisasm")


def _program(name: str) -> str | None:
    for path in [*(root / name for root in _roots("bin")), *_wheel_files(f"*/bin/{name}")]:
        if path.is_file():
            return str(path)
    if found := shutil.which(name):
        return found
    spec = importlib.util.find_spec("triton")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder) / "backends" / "nvidia" / "bin" / name
        if path.is_file():
            return str(path)
    return None
