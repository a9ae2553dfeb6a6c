"""The launch that a kernel was compiled for, read from its machine code or its PTX."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

#: kinds of record in a section `.nv.info.KERNEL`
_PARAMETER, _BLOCK = 0x17, 0x10
_SIZES = {"u64": 8, "b64": 8, "s64": 8, "f64": 8, "u32": 4, "b32": 4, "s32": 4, "f32": 4, "u16": 2, "u8": 1, "b8": 1}


@dataclass(frozen=True)
class Declared:
    """``sizes``: bytes of each parameter; ``alignments``: of what it points to, 1 where nothing is said; ``block``: the
    only block it runs in, if there is one; ``shared``: bytes of static shared memory."""

    sizes: tuple[int, ...] = ()
    alignments: tuple[int, ...] = ()
    block: tuple[int, ...] | None = None
    shared: int = 0


def declared(image: bytes) -> dict[str, Declared]:
    """The kernels of an image, by name."""
    return dict(_of_code(image) if image.startswith(b"\x7fELF") else _of_text(image.decode()))


def _of_text(text: str) -> Iterator[tuple[str, Declared]]:
    for name, parameters, rest in re.findall(r"\.entry\s+([\w$]+)\s*\((.*?)\)(.*?)\{", text, re.DOTALL):
        found = [p for p in parameters.split(",") if ".param" in p]
        sizes = tuple(next((_SIZES[t] for t in re.findall(r"\.(\w+)", p) if t in _SIZES), 8) for p in found)
        aligned = [re.search(r"\.ptr.*\.align (\d+)", p) for p in found]
        block = re.search(r"\.reqntid ([\d, ]+)", rest)
        threads = [int(n) for n in block[1].split(",")] if block else None
        yield (
            name,
            Declared(
                sizes,
                tuple(int(a[1]) if a else 1 for a in aligned),
                (*threads, 1, 1)[:3] if threads else None,
            ),
        )


def _of_code(code: bytes) -> Iterator[tuple[str, Declared]]:
    sections = dict(_sections(code))
    for section, (data, _) in sections.items():
        name = section.removeprefix(".nv.info.")
        if name == section or f".text.{name}" not in sections:
            continue
        sizes: dict[int, int] = {}
        block = None
        for kind, record in _records(data):
            if kind == _PARAMETER:
                _, number, _, packed = struct.unpack("<IHHI", record)
                sizes[number] = packed >> 18 & 0x3FFF
            elif kind == _BLOCK:
                block = struct.unpack("<III", record)
        shared = sections.get(f".nv.shared.{name}", (b"", 0))[1]
        ordered = tuple(sizes[n] for n in sorted(sizes))
        yield name, Declared(ordered, (1,) * len(ordered), block, shared)


def _sections(code: bytes) -> Iterator[tuple[str, tuple[bytes, int]]]:
    (table,) = struct.unpack_from("<Q", code, 40)
    entry, count, names_at = struct.unpack_from("<HHH", code, 58)
    headers = [struct.unpack_from("<IIQQQQ", code, table + n * entry) for n in range(count)]
    strings = headers[names_at][4]
    for name_at, kind, _, _, offset, size in headers:
        start = strings + name_at
        data = b"" if kind == 8 else code[offset : offset + size]  # 8: no bytes in the file
        yield code[start : code.index(b"\0", start)].decode(), (data, size)


def _records(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 4 <= len(data):
        form, kind, value = struct.unpack_from("<BBH", data, at)
        at += 4
        length = value if form == 4 else 0
        yield kind, data[at : at + length]
        at += length
