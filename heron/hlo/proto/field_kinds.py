"""Kinds of fields of HloInstructionProto, each with its writer and reader."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from heron.hlo.ir.instruction import Instruction
from heron.hlo.proto import enums
from heron.hlo.proto.annotations import to_bytes, to_text
from heron.hlo.proto.schema import Message
from heron.hlo.proto.shapes import ShapeReader, ShapeWriter
from heron.records import dataclass

Write = Callable[[Message, Any, Instruction, ShapeWriter], None]
Read = Callable[[Message, ShapeReader, Sequence[Instruction]], Any]


@dataclass(frozen=True, slots=True)
class Field:
    """The writer and reader of an attribute; `always`: write it even with its default value."""

    write: Write
    read: Read
    always: bool = False


def plain_field(field: str, always: bool = False) -> Field:
    """A scalar field that holds the value itself."""
    return Field(lambda to, v, i, s: setattr(to, field, v), lambda p, s, o: getattr(p, field), always)


def count_field(field: str) -> Field:
    """A number that is at least 1; 0 means it was left out."""
    return Field(lambda to, v, i, s: setattr(to, field, v), lambda p, s, o: getattr(p, field) or 1, always=True)


def bytes_field(field: str) -> Field:
    return Field(
        lambda to, v, i, s: setattr(to, field, to_bytes(v)),
        lambda p, s, o: to_text(getattr(p, field)),
    )


def ints_field(field: str, message: str = "", inner: str = "") -> Field:
    """A list of integers, of the instruction or of a message in it."""

    def holder(p: Message) -> Message:
        if inner:
            return getattr(getattr(p, message), inner)
        return getattr(p, message) if message else p

    def write(to: Message, v: Any, i: Instruction, s: ShapeWriter) -> None:
        found = holder(to)
        if message:
            found.SetInParent()
        getattr(found, field).extend(v)

    return Field(write, lambda p, s, o: tuple(getattr(holder(p), field)), always=bool(message))


def inner_field(message: str, field: str) -> Field:
    """A scalar field of a message in the instruction."""

    def write(to: Message, v: Any, i: Instruction, s: ShapeWriter) -> None:
        found = getattr(to, message)
        found.SetInParent()
        setattr(found, field, v)

    return Field(write, lambda p, s, o: getattr(getattr(p, message), field), always=True)


def first_field(field: str) -> Field:
    """An integer that is the only one of a list."""

    def read(p: Message, s: ShapeReader, o: Sequence[Instruction]) -> int | None:
        values = getattr(p, field)
        return values[0] if values else None

    return Field(lambda to, v, i, s: getattr(to, field).append(v), read)


def enum_field(field: str, names: tuple[str, ...], message: str = "", always: bool = False) -> Field:
    """A word, by number."""

    def write(to: Message, v: Any, i: Instruction, s: ShapeWriter) -> None:
        if v is not None:
            setattr(getattr(to, message) if message else to, field, enums.number(names, v))

    def read(p: Message, s: ShapeReader, o: Sequence[Instruction]) -> str | None:
        return enums.word(names, getattr(getattr(p, message) if message else p, field))

    return Field(write, read, always)
