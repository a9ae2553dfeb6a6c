"""The packages that heron needs, and those of its extras, with the use of each."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata

from heron.doctor.finding import Finding, Missing, find
from heron.errors import HeronError

#: the modules of heron's dependencies: importing one shows that it works
_NEEDED = {
    "numpy": "arrays, the evaluator",
    "ml_dtypes": "bf16, f8 and the other small types",
    "scipy": "Fourier transforms and special functions of the evaluator, LAPACK",
    "xdsl": "MLIR",
    "llvmlite": "LLVM: machine code and PTX",
    "google.protobuf": "HLO as protocol buffers",
    "orjson": "traces as files",
    "click": "the command line",
    "rich": "tables and progress",
}
_NAMES = {"google.protobuf": "protobuf"}


def needed() -> Iterator[Finding]:
    """The packages without which heron does not work."""
    for module, use in _NEEDED.items():
        name = _NAMES.get(module, module)
        yield find(name, lambda m=module, n=name: _imported(m, n), use, f"pip install --upgrade {name}", True)


def extras() -> Iterator[Finding]:
    """The packages of extras, the extra's use, and how to install it."""
    yield find("jax, jaxlib", _jax, "StableHLO and JAX programs; XLA:CPU as a peer", "pip install 'heron[jax]'")
    yield find("libdevice", _libdevice, "PTX of functions like exp and tanh", "pip install 'heron[ptx]'")
    yield find("nvJitLink or ptxas", _assembler, "machine code of GPUs, registers, spills", "pip install 'heron[ptx]'")
    yield find("nvdisasm", _disassembler, "`heron compile --to sass`", "pip install 'heron[ptx]'")
    yield find("Triton", _triton, "products of GPUs as block kernels", "pip install 'heron[triton]'")
    yield find("mpi4py and an MPI", _mpi, "programs in several processes", "pip install 'heron[mpi]' mpich")
    yield find("NCCL", lambda: _library("nccl"), "collectives of several GPUs", "pip install 'heron[nccl]'")


def _imported(module: str, name: str) -> str:
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise Missing(str(error)) from None
    return metadata.version(name)


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        raise Missing(f"{name} is not installed") from None


def _jax() -> str:
    versions = f"{_version('jax')}, {_version('jaxlib')}"
    done = subprocess.run(
        [sys.executable, "-c", "import jax, jaxlib"], capture_output=True, text=True, timeout=120, check=False
    )
    if done.returncode:
        raise RuntimeError(_last_line(done.stderr))
    return versions


def _libdevice() -> str:
    from heron.codegen.llvm import libdevice

    try:
        return str(libdevice.find())
    except HeronError as error:
        raise Missing(error.what) from None


def _assembler() -> str:
    from heron.codegen.llvm.tools import find_nvjitlink, find_ptxas

    link, program = find_nvjitlink(), find_ptxas()
    found = [*(["nvJitLink"] if link is not None else []), *([program] if program else [])]
    if not found:
        raise Missing("neither is installed")
    return ", ".join(found)


def _disassembler() -> str:
    from heron.codegen.llvm.tools import find_nvdisasm

    found = find_nvdisasm()
    if found is None:
        raise Missing("nvdisasm is not installed")
    return found


def _triton() -> str:
    from heron.targets.triton import missing

    reason = missing()
    if reason:
        raise Missing(reason)
    return _version("triton")


def _mpi() -> str:
    """The library's version, asked for in a process of its own: some libraries end the process that loads them."""
    version = _version("mpi4py")
    code = "from mpi4py import MPI; print(MPI.Get_library_version())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        raise RuntimeError(_last_line(done.stderr) or f"mpi4py ended with code {done.returncode}")
    library = re.split(r"[\n,]", done.stdout.strip())[0]
    return f"{version}; {' '.join(library.split())}"


def _library(name: str) -> str:
    from heron.targets import libraries

    reason = libraries.missing(name)
    if reason is not None:
        raise Missing(reason)
    return "found"


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else ""
