"""LLVM text of reading and writing fields of structures by their offsets."""

from __future__ import annotations


def load(to: str, kind: str, base: str, offset: int) -> str:
    """``%to`` is the field of that kind at an offset from ``%base``."""
    return f"  %{to}.at = getelementptr i8, ptr %{base}, i64 {offset}\n  %{to} = load {kind}, ptr %{to}.at"


def store(value: str, kind: str, base: str, offset: int) -> str:
    """The field at an offset from ``%base`` becomes a value: ``%name``, stored once in a function, or a constant."""
    place = f"%{base}.{offset}.to"
    return f"  {place} = getelementptr i8, ptr %{base}, i64 {offset}\n  store {kind} {value}, ptr {place}"
