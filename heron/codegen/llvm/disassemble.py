"""Cubin -> SASS, the machine's own instructions as text, through NVIDIA's nvdisasm."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from heron.codegen.llvm.tools import find_nvdisasm
from heron.errors import HeronError

_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(.*?;)", re.M)


def to_sass(code: bytes) -> str:
    """The instructions of every kernel of a cubin.

    Raises:
        HeronError: LLVM026 when nvdisasm is not installed, LLVM027 when it cannot read the cubin.
    """
    program = find_nvdisasm()
    if program is None:
        raise HeronError(
            "LLVM026",
            "no disassembler was found",
            why="SASS is printed by NVIDIA's nvdisasm; the machine code itself needs no disassembler",
            hint="pip install nvidia-cuda-nvdisasm   (or write the code: --to cubin -o FILE)",
        )
    with tempfile.TemporaryDirectory(prefix="heron-nvdisasm-") as folder:
        path = Path(folder) / "kernels.cubin"
        path.write_bytes(code)
        try:
            done = subprocess.run([program, "-c", str(path)], capture_output=True, text=True, check=False)
        except OSError as error:
            raise HeronError("LLVM027", f"cannot run '{program}'", why=str(error)) from error
    if done.returncode:
        why = (done.stderr or done.stdout).strip().replace(str(path), "the cubin")
        raise HeronError("LLVM027", "nvdisasm cannot read the cubin", why=why[:2000] or f"status {done.returncode}")
    return done.stdout


def instructions(sass: str) -> list[str]:
    """The instructions of `to_sass` text, one a line, without addresses."""
    return _INSTRUCTION.findall(sass)
