"""A cubin: machine code of a PTX module (an ELF file), and what each of its kernels uses."""

from __future__ import annotations

import dataclasses
import re
import struct
from dataclasses import field
from typing import Literal

from heron.records import dataclass

Tool = Literal["nvjitlink", "ptxas"]
_TEXT = ".text."  # a kernel's machine code is in the section .text.KERNEL


@dataclass(frozen=True, slots=True)
class Resources:
    """Resources of a kernel: registers, stack and spills (bytes) a thread; shared bytes and barriers a block; code."""

    registers: int = 0
    shared_bytes: int = 0
    stack_bytes: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    barriers: int = 0
    code_bytes: int = 0

    @property
    def spill_bytes(self) -> int:
        """Bytes of spills, stores and loads together."""
        return self.spill_stores + self.spill_loads

    def to_json(self) -> dict[str, int]:
        """All figures by name."""
        return dataclasses.asdict(self)


@dataclass(frozen=True, slots=True)
class Cubin:
    """Machine code of a PTX module, the tool that made it, and the resources of each kernel."""

    code: bytes
    tool: Tool
    resources: dict[str, Resources] = field(default_factory=dict)
    log: str = ""


def cubin(code: bytes, tool: Tool, log: str) -> Cubin:
    """The cubin with resources from the assembler's log and code sizes from the file itself."""
    sizes = code_sizes(code)
    used = {name: dataclasses.replace(r, code_bytes=sizes.get(name, 0)) for name, r in read_resources(log).items()}
    return Cubin(code, tool, used, log)


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
            found[name] = Resources(
                int(match.group(1)), _number(r"(\d+) bytes smem", line), *frame, _number(r"used (\d+) barriers", line)
            )
            frame = (0, 0, 0)
    return found


def _number(pattern: str, line: str) -> int:
    match = re.search(pattern, line)
    return int(match.group(1)) if match else 0


def code_sizes(code: bytes) -> dict[str, int]:
    """Bytes of machine code of each kernel, from the section headers of the ELF file; empty when it is none."""
    if len(code) < 64 or code[:6] != b"\x7fELF\x02\x01":  # 64 bits, little-endian
        return {}
    (table,) = struct.unpack_from("<Q", code, 40)
    entry, count, names_at = struct.unpack_from("<HHH", code, 58)
    headers = [struct.unpack_from("<IIQQQQ", code, table + n * entry) for n in range(count)]
    strings = headers[names_at][4]
    sizes: dict[str, int] = {}
    for name_at, _, _, _, _, size in headers:
        start = strings + name_at
        name = code[start : code.index(b"\0", start)].decode()
        if name.startswith(_TEXT):
            sizes[name.removeprefix(_TEXT)] = size
    return sizes
