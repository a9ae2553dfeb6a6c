"""Metadata: where an instruction comes from in the user's program, and its text."""

from __future__ import annotations

from heron.hlo.ir.quoting import quote
from heron.records import dataclass

STRINGS = ("op_type", "op_name", "source_file")
NUMBERS = ("source_line", "source_end_line", "source_column", "source_end_column")


@dataclass(frozen=True, slots=True)
class Metadata:
    """The origin of an instruction in the user's program. ``extra`` keeps other fields as printed text."""

    op_type: str = ""
    op_name: str = ""
    source_file: str = ""
    source_line: int = 0
    source_end_line: int = 0
    source_column: int = 0
    source_end_column: int = 0
    stack_frame_id: int = 0
    extra: tuple[tuple[str, str], ...] = ()


def print_metadata(m: Metadata, op_name_only: bool = False) -> str:
    """The braces and what is in them; empty when there is nothing to say."""
    if op_name_only:
        return f"{{op_name={quote(m.op_name)}}}" if m.op_name else ""
    parts = [f"{name}={quote(value)}" for name in STRINGS if (value := getattr(m, name))]
    parts += [f"{name}={value}" for name in NUMBERS if (value := getattr(m, name))]
    parts += [f"{name}={value}" for name, value in m.extra]
    if m.stack_frame_id:
        parts.append(f"stack_frame_id={m.stack_frame_id}")
    return "{" + " ".join(parts) + "}" if parts else ""
