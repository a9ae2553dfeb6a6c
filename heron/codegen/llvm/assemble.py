"""PTX -> cubin without a GPU: through nvJitLink (a library in NVIDIA's wheel) or the ptxas program.

Both report what the kernel uses: registers, shared memory, stack, spills.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

from heron.codegen.llvm.cubin import Cubin, Tool, cubin
from heron.codegen.llvm.tools import find_nvjitlink, find_ptxas
from heron.errors import HeronError

PTX_INPUT = 2  # NVJITLINK_INPUT_PTX
_EMPTY = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing() { ret; }\n"


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


@cache
def knows(sm: str) -> bool:
    """Whether there is an assembler and it makes machine code for that architecture."""
    try:
        assemble(_EMPTY, sm)
    except HeronError:
        return False
    return True


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
    return cubin(code.raw, "nvjitlink", log)


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
        return cubin(target.read_bytes(), "ptxas", log)
