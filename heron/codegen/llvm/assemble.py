"""PTX -> cubin without a GPU: through nvJitLink (a library in NVIDIA's wheel) or the ptxas program.

Both report what the kernel uses: registers, shared memory, stack, spills.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from heron.errors import HeronError

PTX_INPUT = 2  # NVJITLINK_INPUT_PTX
Tool = Literal["nvjitlink", "ptxas"]


@dataclass(frozen=True, slots=True)
class Resources:
    """What one kernel uses per thread (registers, stack, spills in bytes) and per block (shared bytes)."""

    registers: int = 0
    shared_bytes: int = 0
    stack_bytes: int = 0
    spill_stores: int = 0
    spill_loads: int = 0


@dataclass(frozen=True, slots=True)
class Cubin:
    """Machine code of a PTX module, the tool that made it, and the resources of each kernel."""

    code: bytes
    tool: Tool
    resources: dict[str, Resources] = field(default_factory=dict)
    log: str = ""


def _wheel_files(*patterns: str) -> list[Path]:
    spec = importlib.util.find_spec("nvidia")
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    return [path for folder in folders for pattern in patterns for path in sorted(Path(folder).glob(pattern))]


@cache
def find_nvjitlink() -> ctypes.CDLL | None:
    """The nvJitLink library, from NVIDIA's wheel, CUDA_HOME or the loader's path; None when absent."""
    roots = [Path(root) / "lib64" for v in ("CUDA_HOME", "CUDA_PATH") if (root := os.environ.get(v))]
    found = [p for root in roots for p in sorted(root.glob("libnvJitLink.so*"))]
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
    if named := os.environ.get("HERON_PTXAS"):
        return named
    roots = [Path(root) / "bin" / "ptxas" for v in ("CUDA_HOME", "CUDA_PATH") if (root := os.environ.get(v))]
    for path in [*roots, *_wheel_files("*/bin/ptxas")]:
        if path.is_file():
            return str(path)
    if found := shutil.which("ptxas"):
        return found
    spec = importlib.util.find_spec("triton")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder) / "backends" / "nvidia" / "bin" / "ptxas"
        if path.is_file():
            return str(path)
    return None


def assemble(ptx: str, sm: str = "sm_90", tool: Tool | None = None) -> Cubin:
    """The cubin of a PTX module.

    Raises:
        HeronError: LLVM024 when neither tool is installed, LLVM025 with the tool's log when it refuses the PTX.
    """
    if tool != "ptxas" and (library := find_nvjitlink()) is not None:
        return _nvjitlink(library, ptx, sm)
    if tool != "nvjitlink" and (program := find_ptxas()) is not None:
        return _ptxas(program, ptx, sm)
    raise HeronError(
        "LLVM024",
        "no PTX assembler was found",
        why="a cubin is made by nvJitLink or ptxas; without one the driver compiles the PTX at load time",
        hint="pip install nvidia-nvjitlink   (or nvidia-cuda-nvcc, which has ptxas)",
    )


def _symbol(library: ctypes.CDLL, name: str) -> Callable[..., int]:
    """An exported function: the plain name, or the newest versioned one."""
    versions = [f"__{name}_{major}_{minor}" for major in (14, 13, 12) for minor in range(15, -1, -1)]
    for candidate in (name, *versions):
        function = getattr(library, candidate, None)
        if function is not None:
            return function
    raise HeronError("LLVM025", f"nvJitLink has no function '{name}'", where=library._name)


def _nvjitlink(library: ctypes.CDLL, ptx: str, sm: str) -> Cubin:
    call = {
        name: _symbol(library, f"nvJitLink{name}")
        for name in ("Create", "Destroy", "AddData", "Complete", "GetLinkedCubinSize", "GetLinkedCubin",
                     "GetErrorLogSize", "GetErrorLog", "GetInfoLogSize", "GetInfoLog")
    }  # fmt: skip
    options = (ctypes.c_char_p * 2)(f"-arch={sm}".encode(), b"-verbose")
    handle = ctypes.c_void_p()
    status = call["Create"](ctypes.byref(handle), ctypes.c_uint32(len(options)), options)
    if status:
        raise HeronError("LLVM025", f"nvJitLink does not know '{sm}'", why=f"nvJitLinkCreate returned {status}")
    try:
        data = ptx.encode()
        status = call["AddData"](handle, PTX_INPUT, data, ctypes.c_size_t(len(data)), b"kernel.ptx")
        status = status or call["Complete"](handle)
        if status:
            log = _log(call, handle, "ErrorLog")
            raise HeronError("LLVM025", "nvJitLink refused the PTX", why=log.strip()[:2000] or f"status {status}")
        size = ctypes.c_size_t()
        call["GetLinkedCubinSize"](handle, ctypes.byref(size))
        code = ctypes.create_string_buffer(size.value)
        call["GetLinkedCubin"](handle, code)
        log = _log(call, handle, "InfoLog")
    finally:
        call["Destroy"](ctypes.byref(handle))
    return Cubin(code.raw, "nvjitlink", read_resources(log), log)


def _log(call: dict, handle: ctypes.c_void_p, kind: str) -> str:
    size = ctypes.c_size_t()
    if call[f"Get{kind}Size"](handle, ctypes.byref(size)) or not size.value:
        return ""
    text = ctypes.create_string_buffer(size.value)
    call[f"Get{kind}"](handle, text)
    return text.value.decode(errors="replace")


def _ptxas(program: str, ptx: str, sm: str) -> Cubin:
    with tempfile.TemporaryDirectory(prefix="heron-ptxas-") as folder:
        source, target = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(ptx)
        command = [program, "-v", f"--gpu-name={sm}", "-o", str(target), str(source)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise HeronError("LLVM025", f"cannot run '{program}'", why=str(error)) from error
        log = done.stdout + done.stderr
        if done.returncode:
            raise HeronError("LLVM025", "ptxas refused the PTX", why=log.strip()[:2000])
        return Cubin(target.read_bytes(), "ptxas", read_resources(log), log)


def read_resources(log: str) -> dict[str, Resources]:
    """Registers, shared memory and spills of each kernel from the log of ``ptxas -v`` (nvJitLink prints the same)."""
    found: dict[str, Resources] = {}
    name, frame = "", (0, 0, 0)
    for line in log.splitlines():
        if match := re.search(r"Function properties for (\S+)|Compiling entry function '([^']+)'", line):
            name = (match.group(1) or match.group(2)).strip("'")
        if match := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            frame = (int(match.group(1)), int(match.group(2)), int(match.group(3)))
        if match := re.search(r"Used (\d+) registers", line):
            shared = re.search(r"(\d+) bytes smem", line)
            found[name] = Resources(int(match.group(1)), int(shared.group(1)) if shared else 0, *frame)
            frame = (0, 0, 0)
    return found
