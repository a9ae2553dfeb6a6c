"""PTX as text: its kernels, their instructions, and how they touch memory. Works on heron's and on XLA's alike."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

_ENTRY = re.compile(r"\.entry (\w+)\(.*?\n\{\n(.*?)\n\}", re.S)
_INSTRUCTION = re.compile(r"^\s+(?:@!?%p\d+\s+)?([a-z][\w.:]*)\s+[^\n]*;|^\s+(ret);", re.M)
_ACCESS = re.compile(r"(?:ld|st)\.(?:\w+\.)*global(?:\.\w+)*")
_WIDTH = re.compile(r"(?:\.v([248]))?\.[bfsu](\d+)$")


@dataclass(frozen=True, slots=True)
class Code:
    """A kernel's PTX: instructions by name, and accesses of global memory by width in bits."""

    instructions: Counter[str]
    accesses: Counter[int]

    @property
    def count(self) -> int:
        """How many instructions there are."""
        return self.instructions.total()


def kernels(ptx: str) -> dict[str, Code]:
    """The kernels of a PTX module."""
    return {name: _code(body) for name, body in _ENTRY.findall(ptx)}


def _code(body: str) -> Code:
    names = Counter(a or b for a, b in _INSTRUCTION.findall(body))
    widths: Counter[int] = Counter()
    for name, times in names.items():
        if _ACCESS.match(name) and (found := _WIDTH.search(name)):
            widths[int(found.group(1) or 1) * int(found.group(2))] += times
    return Code(names, widths)
