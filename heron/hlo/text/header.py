"""The `HloModule` line and the tables of source places after it.

Fields land in `Module.header` under their text name: alias and donor lists as tuples, numbers, flags and frontend
attributes as Python values, what heron only carries as text. The name, the entry layout and `is_scheduled` are the
module's own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heron.hlo.ir.quoting import quote
from heron.hlo.ir.shape import Shape
from heron.hlo.text.common import print_frontend_attributes, read_frontend_attributes
from heron.hlo.text.cursor import Cursor
from heron.hlo.text.nearest import nearest
from heron.hlo.text.structured import print_index
from heron.records import dataclass

EntryLayout = tuple[tuple[Shape, ...], Shape]
HeaderAlias = tuple[tuple[int, ...], int, tuple[int, ...], str]
Donor = tuple[int, tuple[int, ...]]

ALIAS_KINDS = ("may-alias", "must-alias")


@dataclass(frozen=True, slots=True)
class StackFrames:
    """The sources of instructions: `Metadata.stack_frame_id` counts from 1 into `frames`.

    ``locations``: (file, function, line, end line, column, end column); ``frames``: (location, parent).
    Numbers that refer to another table count from 1; those of parents, as in the text, from 2: 1 is no parent.
    """

    files: tuple[str, ...]
    functions: tuple[str, ...]
    locations: tuple[tuple[int, int, int, int, int, int], ...]
    frames: tuple[tuple[int, int], ...]

    def place(self, frame: int) -> tuple[str, int, str] | None:
        """File, line and function of a frame, or None when there is no such frame."""
        if not 0 < frame <= len(self.frames):
            return None
        location = self.frames[frame - 1][0]
        if not 0 < location <= len(self.locations):
            return None
        file, function, line = self.locations[location - 1][:3]
        if not (0 < file <= len(self.files) and 0 < function <= len(self.functions)):
            return None
        return self.files[file - 1], line, self.functions[function - 1]


NO_FRAMES = StackFrames((), (), (), ())


# -- reading ---------------------------------------------------------------------------------------------------------
def _read_header_alias(p: Cursor) -> HeaderAlias:
    output: tuple[int, ...] = p.ints()
    p.expect(":")
    p.expect("(")
    number = p.integer()
    p.expect(",")
    index = p.ints()
    kind = ALIAS_KINDS[0]
    if p.accept(","):
        kind = p.word("may-alias or must-alias")
        if kind not in ALIAS_KINDS:
            p.fail("TXT002", f"expected may-alias or must-alias, found '{kind[:40]}'", p.n - 1)
    p.expect(")")
    return output, number, index, kind


def _read_donor(p: Cursor) -> Donor:
    p.expect("(")
    number = p.integer()
    p.expect(",")
    index = p.ints()
    p.expect(")")
    return number, index


_READ: dict[str, Callable[[Cursor], Any]] = {
    "is_scheduled": lambda p: p.boolean(),
    "input_output_alias": lambda p: tuple(sorted(p.braced(lambda: _read_header_alias(p)))),
    "buffer_donor": lambda p: tuple(sorted(p.braced(lambda: _read_donor(p)))),
    "alias_passthrough_params": lambda p: p.boolean(),
    "entry_computation_layout": lambda p: _read_entry_layout(p),
    "allow_spmd_sharding_propagation_to_parameters": lambda p: _read_flags(p),
    "allow_spmd_sharding_propagation_to_output": lambda p: _read_flags(p),
    "replica_count": lambda p: p.integer(),
    "num_partitions": lambda p: p.integer(),
    "frontend_attributes": read_frontend_attributes,
    "origin_recovery_table": lambda p: p.raw(),
    "dynamic_parameter_binding": lambda p: p.raw(),
}


def _read_flags(p: Cursor) -> tuple[bool, ...]:
    return p.braced(p.boolean) if p.tokens[p.n][:1] == "{" else (p.boolean(),)


def _read_entry_layout(p: Cursor) -> EntryLayout:
    p.expect("{")
    p.expect("(")
    parameters: list[Shape] = []
    while not p.accept(")"):
        if parameters:
            p.expect(",")
        parameters.append(p.shape())
    p.expect("->")
    result = p.shape()
    p.expect("}")
    return tuple(parameters), result


def read_header(p: Cursor) -> dict[str, Any]:
    """The fields after the module's name, and the tables, if there are any."""
    fields: dict[str, Any] = {}
    while p.accept(","):
        name = p.word("a field of the HloModule line")
        if name in fields:
            p.fail("TXT006", f"'{name[:40]}' is given twice", p.n - 1)
        p.expect("=")
        read = _READ.get(name)
        if read is None:
            why = "there are: " + ", ".join(_READ)
            p.fail("TXT004", f"a module has no '{name[:40]}'", p.n - 2, why=why, hint=nearest(name, _READ))
        fields[name] = read(p)
    for name in [name for name, show in _PRINT.items() if name in fields and not show(fields[name])]:
        del fields[name]  # it says what holds anyway
    if p.tokens[p.n] == "FileNames":
        frames = _read_stack_frames(p)
        if frames.frames:
            fields["stack_frames"] = frames
    return fields


def _read_stack_frames(p: Cursor) -> StackFrames:
    files = _read_strings(p, "FileNames")
    functions = _read_strings(p, "FunctionNames")
    fields = ("file_name_id", "function_name_id", "line", "end_line", "column", "end_column")
    locations = _read_rows(p, "FileLocations", fields)
    frames = _read_rows(p, "StackFrames", ("file_location_id", "parent_frame_id"))
    return StackFrames(files, functions, locations, frames)  # type: ignore[arg-type]


def _read_strings(p: Cursor, title: str) -> tuple[str, ...]:
    p.expect(title)
    found: list[str] = []
    while p.tokens[p.n].isdecimal():
        p.n += 1
        found.append(p.string())
    return tuple(found)


def _read_rows(p: Cursor, title: str, fields: tuple[str, ...]) -> tuple[tuple[int, ...], ...]:
    p.expect(title)
    found: list[tuple[int, ...]] = []
    while p.tokens[p.n].isdecimal():
        p.n += 1
        p.expect("{")
        row = dict.fromkeys(fields, 0)
        while not p.accept("}"):
            name = p.word("a field")
            if name not in row:
                p.fail("TXT004", f"no field '{name[:40]}' is expected here", p.n - 1, why=", ".join(fields))
            p.expect("=")
            row[name] = p.integer()
        found.append(tuple(row.values()))
    return tuple(found)


# -- printing --------------------------------------------------------------------------------------------------------
def _print_flags(values: tuple[bool, ...]) -> str:
    return "{" + ",".join("true" if v else "false" for v in values) + "}"


def _print_header_alias(alias: HeaderAlias) -> str:
    output, number, index, kind = alias
    return f"{print_index(output)}: ({number}, {print_index(index)}, {kind})"


def _spaced(parts: list[str]) -> str:
    return "{ " + ", ".join(parts) + " }" if parts else ""


def _print_entry_layout(value: EntryLayout) -> str:
    parameters, result = value
    parts = [(f"/*index={n}*/" if n and n % 5 == 0 else "") + s.text for n, s in enumerate(parameters)]
    return "{(" + ", ".join(parts) + ")->" + result.text + "}"


#: in the order they print; an empty text means the field says nothing
_PRINT: dict[str, Callable[[Any], str]] = {
    "is_scheduled": lambda v: "true" if v else "",
    "input_output_alias": lambda v: _spaced(list(map(_print_header_alias, v))),
    "buffer_donor": lambda v: _spaced([f"({number}, {print_index(index)})" for number, index in v]),
    "alias_passthrough_params": lambda v: "true" if v else "",
    "entry_computation_layout": _print_entry_layout,
    "allow_spmd_sharding_propagation_to_parameters": lambda v: _print_flags(v) if v != (False,) else "",
    "allow_spmd_sharding_propagation_to_output": lambda v: _print_flags(v) if v != (False,) else "",
    "replica_count": lambda v: str(v) if v != 1 else "",
    "num_partitions": lambda v: str(v) if v != 1 else "",
    "frontend_attributes": lambda v: print_frontend_attributes(v) if v else "",
}


def print_header(fields: dict[str, Any]) -> str:
    """The fields, each with a comma before it."""
    parts: list[str] = []
    for name, show in _PRINT.items():
        if name in fields and (text := show(fields[name])):
            parts.append(f", {name}={text}")
    parts += [f", {name}={value}" for name, value in fields.items() if name not in _PRINT and name != "stack_frames"]
    return "".join(parts)


def print_stack_frames(tables: StackFrames) -> str:
    """The four tables."""
    lines = ["", "", "FileNames"]
    lines += [f"{n} {quote(s)}" for n, s in enumerate(tables.files, 1)]
    lines += ["", "FunctionNames"]
    lines += [f"{n} {quote(s)}" for n, s in enumerate(tables.functions, 1)]
    lines += ["", "FileLocations"]
    for n, (file, function, line, end_line, column, end_column) in enumerate(tables.locations, 1):
        lines.append(
            f"{n} {{file_name_id={file} function_name_id={function} line={line} end_line={end_line}"
            f" column={column} end_column={end_column}}}"
        )
    lines += ["", "StackFrames"]
    lines += [f"{n} {{file_location_id={at} parent_frame_id={up}}}" for n, (at, up) in enumerate(tables.frames, 1)]
    return "\n".join(lines) + "\n"
