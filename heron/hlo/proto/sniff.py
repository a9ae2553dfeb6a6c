"""Recognises bytes by their outermost fields alone, without protobuf, so that looking costs nothing."""

from __future__ import annotations

from collections.abc import Iterator

#: HloModuleProto: its name, the entry's name and the computations stand first
_MODULE = (1, 2, 3)
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def kind(data: bytes, depth: int = 2) -> str | None:
    """``HloModuleProto``, ``HloProto``, ``HloSnapshot``, or None; a file that is cut off is named all the same."""
    fields: dict[int, tuple[int, int]] = {}
    for number, begin, end in _fields(data):
        fields.setdefault(number, (begin, end))
        if all(n in fields for n in _MODULE):
            begin, end = fields[3]  # a computation begins with its name
            return "HloModuleProto" if data[begin : begin + 1] == b"\n" else None
    if not depth or 1 not in fields:
        return None
    begin, end = fields[1]
    inner = kind(data[begin:end], depth - 1)
    return {"HloModuleProto": "HloProto", "HloProto": "HloSnapshot"}.get(inner or "")


def looks_like(data: bytes) -> bool:
    """Whether the bytes are (the beginning of) one of the three messages; no text ever looks like one."""
    return kind(data) is not None


def _fields(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Number, begin and end of each field with bytes inside, as far as the data make sense."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == _BYTES:
            size, at = _varint(data, at)
            if size < 0 or number < 1:
                return
            yield number, at, min(at + size, len(data))
            at += size
        elif wire == _VARINT:
            _, at = _varint(data, at)
        elif wire in (_FIXED64, _FIXED32):
            at += 8 if wire == _FIXED64 else 4
        else:
            return


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number and where it ends; -1 when there is none."""
    value = 0
    for n in range(10):
        if at + n >= len(data):
            break
        byte = data[at + n]
        value |= (byte & 127) << 7 * n
        if byte < 128:
            return value, at + n + 1
    return -1, len(data)
