"""NVIDIA's libdevice: where it is, and one small bitcode file per function.

Parsing the whole file costs about 60 ms per kernel module, so each function that is ever used is cut out once, with
what it calls, and kept in a cache folder (written atomically; in memory only when the disk cannot be written).
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from heron import files
from heron.codegen.llvm.optimize import LOCK, binding, binding_for_gpus
from heron.errors import HeronError

FILE = "libdevice.10.bc"
_memory: dict[str, bytes] = {}


def candidates() -> Iterator[Path]:
    """Places libdevice may be, best first: CUDA_HOME, NVIDIA's wheels, Triton's, the usual install folder."""
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if root := os.environ.get(variable):
            yield Path(root) / "nvvm" / "libdevice" / FILE
    for package, patterns in (
        ("nvidia", (f"*/nvvm/libdevice/{FILE}", f"nvvm/libdevice/{FILE}")),
        ("triton", (f"backends/nvidia/lib/{FILE}",)),
    ):
        spec = importlib.util.find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
            for pattern in patterns:
                yield from sorted(Path(folder).glob(pattern))
    yield Path("/usr/local/cuda/nvvm/libdevice") / FILE


@cache
def find() -> Path:
    """The libdevice file. Raises LLVM020 with what to install when there is none."""
    for path in candidates():
        if path.is_file():
            return path
    raise HeronError(
        "LLVM020",
        "libdevice (NVIDIA's device math library) was not found",
        why="GPU kernels call its __nv_* functions for exp, tanh, …",
        hint="pip install nvidia-nvvm   (or triton, or set CUDA_HOME)",
    )


def cache_folder() -> Path:
    """The folder of function files."""
    return files.cache_folder() / f"libdevice-{digest()}"


@cache
def _whole() -> bytes:
    return find().read_bytes()


@cache
def digest() -> str:
    """Of the file and of LLVM's version: functions cut out of it are kept under this."""
    version = str(binding().llvm_version_info)
    return hashlib.sha256(_whole() + version.encode()).hexdigest()[:16]


def bitcode(name: str) -> bytes:
    """Bitcode of one ``__nv_*`` function and what it needs. Raises LLVM021 when libdevice has no such function."""
    found = _memory.get(name)
    if found is not None:
        return found
    with LOCK:
        path = cache_folder() / f"{name}.bc"
        try:
            code = path.read_bytes()
        except OSError:
            code = _extract(name)
            _store(path, code)
        _memory[name] = code
    return code


def _extract(name: str) -> bytes:
    llvm = binding_for_gpus()
    module = llvm.parse_bitcode(_whole())
    names = {f.name for f in module.functions}
    if name not in names:
        raise HeronError("LLVM021", f"libdevice has no function '{name}'", where=str(find()))
    for function in module.functions:
        if not function.is_declaration and function.name != name:
            function.linkage = "internal"
    for variable in module.global_variables:
        variable.linkage = "internal"
    options = llvm.create_pipeline_tuning_options(speed_level=0)
    target = llvm.Target.from_triple("nvptx64-nvidia-cuda").create_target_machine(cpu="sm_70", opt=0)
    builder = llvm.create_pass_builder(target, options)
    manager = llvm.create_new_module_pass_manager()
    manager.add_global_dead_code_eliminate_pass()
    manager.run(module, builder)
    return module.as_bitcode()


def _store(path: Path, code: bytes) -> None:
    """Write atomically; a full or read-only disk only costs the cache."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(code)
            os.replace(temporary, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
