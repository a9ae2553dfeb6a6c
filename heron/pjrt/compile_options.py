"""CompileOptions: how many devices a program is for, which, and heron's own options."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from heron.errors import HeronError
from heron.options import Options

#: compile options meant for heron begin so; the rest of the name is a field of `heron.Options`
PREFIX = "heron_"
#: the option with the numbers of the Python functions a program calls, the first for ``index = 0`` of its calls
CALLBACKS = "heron_callbacks"

#: what is wrong with options of XLA, or None; heron itself knows none of them
XLA_CHECKS: list[Callable[[dict[str, Any]], str | None]] = []

# numbers of fields, from openxla/xla: xla/pjrt/proto/compile_options.proto and xla/xla_data.proto
_BUILD_OPTIONS, _OVERRIDES = 3, 7
_ORDINAL, _REPLICAS, _PARTITIONS, _ASSIGNMENT = 1, 4, 5, 9
_COMPUTATION_DEVICES = 3


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """The options that a client compiles a program with.

    ``device_assignment[replica][partition]`` is a device's number; empty: the first devices. ``overrides`` are
    ``heron_threads=1`` and the like; those of XLA (``xla_…``) mean nothing here and are passed over, unless
    `XLA_CHECKS` have something against them.

    >>> CompileOptions(overrides={"heron_math": "fast"}).options().math
    'fast'
    """

    num_replicas: int = 1
    num_partitions: int = 1
    device_assignment: tuple[tuple[int, ...], ...] = ()
    device_ordinal: int = -1
    overrides: dict[str, Any] = field(default_factory=dict)

    def options(self) -> Options:
        """heron's options: those of the environment, changed by the overrides. Raises PJRT005 for one that is none."""
        settings = []
        theirs = {name: value for name, value in self.overrides.items() if name.startswith("xla_")}
        for check in XLA_CHECKS if theirs else ():
            if wrong := check(theirs):
                raise HeronError("PJRT005", wrong, hint="XLA's options do nothing under heron: leave them out")
        for name, value in self.overrides.items():
            if name == CALLBACKS:
                continue
            if name.startswith(PREFIX):
                settings.append(f"{name.removeprefix(PREFIX)}={value}")
            elif not name.startswith("xla_"):
                hint = f"heron's own are {PREFIX}threads, {PREFIX}math, … (`heron compile --help`)"
                raise HeronError("PJRT005", f"No such compile option: '{name}'", hint=hint)
        return Options.from_env().with_settings(settings)

    @property
    def callbacks(self) -> tuple[int, ...]:
        """Numbers of the functions the program's calls of Python have by index; none where the index is the number."""
        return tuple(int(n) for n in str(self.overrides.get(CALLBACKS, "")).split(",") if n)

    def devices(self) -> list[int]:
        """Numbers of the devices, all partitions of one replica after another."""
        if self.device_assignment:
            return [d for replica in self.device_assignment for d in replica]
        if self.num_replicas * self.num_partitions == 1:
            return [max(self.device_ordinal, 0)]
        return list(range(self.num_replicas * self.num_partitions))

    def assignment_bytes(self) -> bytes:
        """The device assignment as the bytes of a DeviceAssignmentProto."""
        devices = self.devices()
        text = _number(1, self.num_replicas) + _number(2, self.num_partitions)
        for n in range(self.num_partitions):
            ids = b"".join(_varint(d) for d in devices[n :: self.num_partitions])
            text += _bytes(3, _bytes(1, ids))
        return text

    def serialize(self) -> bytes:
        """The bytes of a CompileOptionsProto with what heron reads of one."""
        build = _number(_REPLICAS, self.num_replicas) + _number(_PARTITIONS, self.num_partitions)
        build += _bytes(_ASSIGNMENT, self.assignment_bytes())
        entries = [_bytes(1, n.encode()) + _bytes(2, _bytes(1, str(v).encode())) for n, v in self.overrides.items()]
        return _bytes(_BUILD_OPTIONS, build) + b"".join(_bytes(_OVERRIDES, e) for e in entries)

    @staticmethod
    def parse(data: bytes) -> CompileOptions:
        """From the bytes of a CompileOptionsProto; fields that say nothing to heron are passed over.

        Raises PJRT006 for bytes that are none.
        """
        build: dict[int, Any] = {}
        overrides: dict[str, Any] = {}
        assignment: tuple[tuple[int, ...], ...] = ()
        for number, value in _fields(data):
            if number == _BUILD_OPTIONS:
                build.update(_fields(value))
            elif number == _OVERRIDES:
                name, override = _override(value)
                overrides[name] = override
        if _ASSIGNMENT in build:
            columns = [_devices(v) for n, v in _fields(build[_ASSIGNMENT]) if n == _COMPUTATION_DEVICES]
            assignment = tuple(zip(*columns, strict=True))
        return CompileOptions(
            build.get(_REPLICAS, 1) or 1,
            build.get(_PARTITIONS, 1) or 1,
            assignment,
            _signed(build.get(_ORDINAL, -1)),
            overrides,
        )


def _override(data: bytes) -> tuple[str, Any]:
    entry = dict(_fields(data))
    kind, value = next(iter(_fields(entry.get(2, b""))), (1, b""))
    readers = {
        1: lambda v: v.decode(errors="replace"),
        2: bool,
        3: _signed,
        4: lambda v: struct.unpack("<d", v)[0],
    }
    return entry.get(1, b"").decode(errors="replace"), readers[kind](value)


def _devices(data: bytes) -> list[int]:
    """Numbers of a ComputationDevice, packed or one by one."""
    found: list[int] = []
    for number, value in _fields(data):
        if number == 1 and isinstance(value, bytes):
            at = 0
            while at < len(value):
                one, at = _read_varint(value, at)
                found.append(_signed(one))
        elif number == 1:
            found.append(_signed(value))
    return found


# -- the wire format: https://protobuf.dev/programming-guides/encoding -------------------------------------------------


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Numbers and values of a message: int, or bytes for the rest."""
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


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes((*out, value))


def _number(field_number: int, value: int) -> bytes:
    return _varint(field_number << 3) + _varint(value)


def _bytes(field_number: int, value: bytes) -> bytes:
    return _varint(field_number << 3 | 2) + _varint(len(value)) + value
