"""Triton's texts without their places, and for each line the line of the kernel as heron emitted it.

Triton notes for every op, through all stages, where in its input the op stood.
"""

from __future__ import annotations

import re

from heron.codegen.llvm.debug_lines import stripped

_MLIR_TABLE = re.compile(r"^(#loc\d*) = loc\((.*)\)$")
_MLIR_PLACE = re.compile(r" ?loc\((#loc\d*|\"[^\"]*\":\d+:\d+|unknown)\)")
_POSITION = re.compile(r"\":(\d+):\d+")
_NAME = re.compile(r"#loc\d*")
_LLVM_TABLE = re.compile(r"^(!\d+) = !DILocation\(line: (\d+)")
_LLVM_PLACE = re.compile(r",? !dbg (!\d+)")
#: metadata that describes places
_LLVM_NOISE = re.compile(r"^(!\d+ = (distinct )?!DI|!llvm\.dbg)")


def located(stage: str, text: str) -> tuple[list[str], list[int]]:
    """The lines of one of Triton's texts, and for each the line it comes from, from 1 on; 0 where there is none."""
    if stage == "ptx":
        return stripped(text)
    return (_llvm if stage == "llir" else _mlir)(text.rstrip("\n").split("\n"))


def _mlir(lines: list[str]) -> tuple[list[str], list[int]]:
    found = [_MLIR_TABLE.match(line) for line in lines]
    table = {m.group(1): m.group(2) for m in found if m}
    kept = [line for line, m in zip(lines, found, strict=True) if not m]
    places = [[_mlir_line(m, table) for m in _MLIR_PLACE.findall(line)] for line in kept]
    return [_MLIR_PLACE.sub("", line) for line in kept], [at[-1] if at else 0 for at in places]


def _mlir_line(place: str, table: dict[str, str]) -> int:
    """The line that a place means: its own, or that of the first place it is made of."""
    seen: set[str] = set()
    while place not in seen:
        seen.add(place)
        place = table.get(place, place)
        if at := _POSITION.search(place):
            return int(at.group(1))
        if name := _NAME.search(place):
            place = name.group()
    return 0


def _llvm(lines: list[str]) -> tuple[list[str], list[int]]:
    table = {m.group(1): int(m.group(2)) for line in lines if (m := _LLVM_TABLE.match(line))}
    kept = [line for line in lines if not _LLVM_NOISE.match(line)]
    places = [m.group(1) if (m := _LLVM_PLACE.search(line)) else "" for line in kept]
    return [_LLVM_PLACE.sub("", line) for line in kept], [table.get(place, 0) for place in places]
