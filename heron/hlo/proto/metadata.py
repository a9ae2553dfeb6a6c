"""Metadata ↔ OpMetadata, and the tables of stack frames ↔ StackFrameIndexProto."""

from __future__ import annotations

from heron.hlo.ir.metadata import Metadata
from heron.hlo.ir.quoting import quote
from heron.hlo.ir.words import Words
from heron.hlo.proto.schema import Message
from heron.hlo.text.header import StackFrames

_NUMBERS = ("source_line", "source_end_line", "source_column", "source_end_column", "stack_frame_id")
_EXTRA_STRINGS = ("deduplicated_name", "scheduling_name")


def write_metadata(m: Metadata, to: Message) -> None:
    """Fill an empty OpMetadata. Raises PROTO006 for fields it has not."""
    to.SetInParent()
    if m.op_name:
        to.op_name = m.op_name
    if m.op_type:
        to.op_type = m.op_type
    if m.source_file:
        to.source_file = m.source_file
        to.source_line = m.source_line
        to.source_end_line = m.source_end_line
        to.source_column = m.source_column
        to.source_end_column = m.source_end_column
    elif m.source_line or m.source_end_line or m.source_column or m.source_end_column:
        for name in _NUMBERS:
            setattr(to, name, getattr(m, name))
    if m.stack_frame_id:
        to.stack_frame_id = m.stack_frame_id
    for name, value in m.extra:
        words = Words(value, f"metadata {name}")
        if name in _EXTRA_STRINGS:
            setattr(to, name, words.string())
        elif name == "profile_type":
            words.expect("{")
            to.profile_type.extend(words.integers("}"))
        else:
            words.fail("one of " + ", ".join((*_EXTRA_STRINGS, "profile_type")))
        words.end()


def read_metadata(proto: Message) -> Metadata | None:
    """The metadata, or None when the message is empty."""
    extra: tuple[tuple[str, str], ...] = ()
    if proto.profile_type:
        extra += (("profile_type", "{" + ",".join(map(str, proto.profile_type)) + "}"),)
    if proto.deduplicated_name:
        extra += (("deduplicated_name", quote(proto.deduplicated_name)),)
    if proto.scheduling_name:
        extra += (("scheduling_name", quote(proto.scheduling_name)),)
    found = Metadata(
        proto.op_type,
        proto.op_name,
        proto.source_file,
        proto.source_line,
        proto.source_end_line,
        proto.source_column,
        proto.source_end_column,
        proto.stack_frame_id,
        extra,
    )
    return found if found != _NONE else None


_NONE = Metadata()


# -- stack frames ----------------------------------------------------------------------------------------------------
# The text's parent numbers are one more than the proto's: 0 there, and 1 in text, is a frame without parent.
def write_stack_frames(frames: StackFrames, to: Message) -> None:
    """Fill an empty StackFrameIndexProto."""
    to.file_names.extend(frames.files)
    to.function_names.extend(frames.functions)
    for file, function, line, end_line, column, end_column in frames.locations:
        to.file_locations.add(
            file_name_id=file,
            function_name_id=function,
            line=line,
            end_line=end_line,
            column=column,
            end_column=end_column,
        )
    for location, parent in frames.frames:
        to.stack_frames.add(file_location_id=location, parent_frame_id=parent - 1)


def read_stack_frames(proto: Message) -> StackFrames:
    """The tables."""
    locations = tuple(
        (f.file_name_id, f.function_name_id, f.line, f.end_line, f.column, f.end_column) for f in proto.file_locations
    )
    frames = tuple((f.file_location_id, f.parent_frame_id + 1) for f in proto.stack_frames)
    return StackFrames(tuple(proto.file_names), tuple(proto.function_names), locations, frames)
