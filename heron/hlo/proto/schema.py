"""The protocol buffers' schema: message classes made, on import of this file, from the table in messages.txt.

A line is ``number type name``; ``*`` marks a repeated field, ``?`` one whose absence differs from zero. Numbers are
those published in openxla/xla (xla/xla_data.proto, xla/service/hlo.proto). Three liberties, none visible on the wire:
enumerations are int32 (their names are in `enums`), maps are lists of entries, and a literal's packed floats and
booleans are bytes, which is what they are, so that arrays go in and out as a whole, NaN payloads included. Fields not
in the table are kept unread by protobuf; those of a module travel in `Module.carried`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

#: heron's own field of HloModuleProto: what the header line says and XLA's fields cannot (XLA skips it, unread)
HEADER_FIELD = 186743

_PACKAGE = "heron"
_TABLE = Path(__file__).with_name("messages.txt")
_Field = descriptor_pb2.FieldDescriptorProto


def _build() -> dict[str, Any]:
    """Message classes by name."""
    file = descriptor_pb2.FileDescriptorProto(name="heron_hlo.proto", package=_PACKAGE, syntax="proto3")
    message: descriptor_pb2.DescriptorProto | None = None
    for line in _TABLE.read_text("utf-8").splitlines():
        if not line.startswith(" "):
            message = file.message_type.add(name=line)
            continue
        assert message is not None
        number, type_name, name = line.split()
        field = message.field.add(name=name, number=int(number), label=_Field.LABEL_OPTIONAL)
        if type_name.endswith("*"):
            field.label = _Field.LABEL_REPEATED
        if type_name.endswith("?"):  # presence, which proto3 spells as a oneof of a single field
            field.proto3_optional, field.oneof_index = True, len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{name}")
        type_name = type_name.rstrip("*?")
        if type_name[0].islower():
            field.type = _Field.Type.Value(f"TYPE_{type_name.upper()}")
        else:
            field.type, field.type_name = _Field.TYPE_MESSAGE, f".{_PACKAGE}.{type_name}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = pool.FindFileByName(file.name).message_types_by_name
    return {name: message_factory.GetMessageClass(d) for name, d in found.items()}


MESSAGES: dict[str, Any] = _build()
#: messages are made by descriptor, so no type checker knows their fields
Message = Any
