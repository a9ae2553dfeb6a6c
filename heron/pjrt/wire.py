"""The wire format of protocol buffers, for the few messages that PJRT passes as bytes.

https://protobuf.dev/programming-guides/encoding
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Any

from heron.errors import HeronError


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Numbers and values of a message's fields in order: an int, or bytes for all that is no varint.

    Raises PJRT006 for bytes that are no message.
    """
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _read_varint(data, at)
            yield key >> 3, value
            continue
        if kind == 2:
            size, at = _read_varint(data, at)
        else:
            size = {1: 8, 5: 4}.get(kind, len(data))
        if at + size > len(data):
            raise _broken(data)
        yield key >> 3, data[at : at + size]
        at += size


def integers(value: int | bytes) -> list[int]:
    """The signed integers of one entry of a repeated field: one of them, or several packed."""
    if isinstance(value, int):
        return [signed(value)]
    found: list[int] = []
    at = 0
    while at < len(value):
        one, at = _read_varint(value, at)
        found.append(signed(one))
    return found


def signed(value: int) -> int:
    """A varint of an int64."""
    return value - (1 << 64) if value >> 63 else value


def number(field: int, value: int) -> bytes:
    """A field that holds an integer."""
    return _varint(field << 3) + _varint(value)


def text(field: int, value: bytes) -> bytes:
    """A field that holds bytes, text or a message."""
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def double(field: int, value: float) -> bytes:
    """A field that holds a float of 64 bits."""
    return _varint(field << 3 | 1) + struct.pack("<d", value)


def from_double(value: bytes) -> float:
    """The float of 64 bits in a field's value."""
    return struct.unpack("<d", value)[0]


def packed(field: int, values: Iterable[int]) -> bytes:
    """A repeated field of integers; no bytes for none."""
    data = b"".join(map(_varint, values))
    return text(field, data) if data else b""


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
    raise _broken(data)


def _broken(data: bytes) -> HeronError:
    return HeronError("PJRT006", "these bytes are not compile options", why=f"{len(data)} bytes, {data[:20]!r} …")


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes((*out, value))
