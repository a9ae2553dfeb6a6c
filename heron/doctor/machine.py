"""The machine: Python, the processor, the GPU with its driver and libraries, and the folders that heron writes to."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator

from heron import __version__, configuration, files, targets
from heron.doctor.finding import Finding, Missing, find
from heron.targets import cuda, libcuda, libraries
from heron.trace.summary import size

_OLDEST_PYTHON = (3, 11)


def machine() -> Iterator[Finding]:
    """heron and Python, the processor, the cache folder and the file of options."""
    yield Finding("heron", "ok", __version__, is_required=True)
    yield find("Python", _python, "", "Python 3.11 or newer", True)
    yield find("processor", _processor, "the target cpu", "", True)
    yield find("cache folder", _cache, "code kept for later compiles (-O cache=true)", "set HERON_CACHE_DIR")
    yield find("heron.toml", _configuration, "options kept in a file", "docs/use/configuration.md")


def gpu() -> Iterator[Finding]:
    """The NVIDIA driver with its devices, and the libraries that programs may call."""
    yield find("NVIDIA driver", _driver, "running on a GPU (the target cuda)", "install NVIDIA's driver, 525 or newer")
    for name, use, wheel in _LIBRARIES:
        yield find(name, lambda n=name: _library(n), use, f"pip install {wheel}")


#: libraries with their uses and wheels
_LIBRARIES = (
    ("cublaslt", "matrix products on GPUs", "nvidia-cublas"),
    ("cudnn", "convolutions, attention and norms on GPUs", "nvidia-cudnn-cu13"),
    ("cusolver", "factorisations on GPUs", "nvidia-cusolver"),
    ("cufft", "Fourier transforms on GPUs", "nvidia-cufft"),
)


def _python() -> str:
    if sys.version_info < _OLDEST_PYTHON:
        raise RuntimeError(f"Python {platform.python_version()} is too old")
    return f"{platform.python_version()} on {platform.system()} {platform.machine()}"


def _processor() -> str:
    host = targets.get("cpu")
    return f"{host.machine}, {host.cores} cores, {size(host.memory_bytes)}"


def _cache() -> str:
    folder = files.cache_folder()
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    if not os.access(place, os.W_OK):
        raise PermissionError(f"{folder} cannot be written")
    return f"{folder}, {size(shutil.disk_usage(place).free)} free"


def _configuration() -> str:
    path = configuration.current().path
    return path or "none"


def _driver() -> str:
    library = libcuda.library()
    if library is None:
        raise Missing("libcuda is not on this machine")
    result = library.cuInit(0)
    if result:
        raise RuntimeError(f"cuInit gives {libcuda.RESULTS.get(result, result)}")
    count = libcuda.read(library.cuDeviceGetCount) or 0
    if not count:
        raise Missing("the driver finds no device")
    version = libcuda.read(library.cuDriverGetVersion) or 0
    names = ", ".join(dict.fromkeys(cuda.device_name(n) for n in range(count)))
    return f"CUDA {version // 1000}.{version % 1000 // 10}, {count} x {names}"


def _library(name: str) -> str:
    reason = libraries.missing(name)
    if reason is not None:
        raise Missing(reason)
    return "found"
