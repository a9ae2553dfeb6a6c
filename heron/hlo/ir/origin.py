"""The origin of an instruction: the user's operation and source line, from its metadata."""

from __future__ import annotations

from pathlib import PurePath

from heron.hlo.ir.instruction import Instruction


def source_place(i: Instruction) -> tuple[str, int] | None:
    """The path and the line of the user's source, from the metadata itself or the module's table of stack frames."""
    m = i.metadata
    if m is None:
        return None
    if m.source_file:
        return m.source_file, m.source_line
    module = i.parent.module if i.parent is not None else None
    tables = module.header.get("stack_frames") if module is not None else None
    place = tables.place(m.stack_frame_id) if tables is not None else None
    return (place[0], place[1]) if place is not None else None


def source_line(i: Instruction) -> str:
    """``model.py:12``; empty where nothing says it."""
    place = source_place(i)
    return f"{PurePath(place[0]).name}:{place[1]}" if place is not None else ""


def operation(i: Instruction) -> str:
    """The user's name for it: ``jit(f)/layer_0/dot_general``; empty if the metadata has none."""
    return i.metadata.op_name if i.metadata is not None else ""


def origin(i: Instruction) -> str:
    """Source line and the last word of the operation, whichever there are: ``model.py:12 dot_general``."""
    return f"{source_line(i)} {operation(i).rpartition('/')[2]}".strip()
