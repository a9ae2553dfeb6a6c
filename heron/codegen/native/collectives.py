"""Collectives in a native program: constants that say what is exchanged, and calls of the code in `collectives_code`.

A program for several devices finds the device that runs it in front of its table of buffers. Where devices are to stop,
each function of the program returns at the collective it has come to.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from heron.runtime import compiled
from heron.runtime.collectives.exchange import Piece as Cut
from heron.runtime.collectives.exchange import Way
from heron.runtime.collectives.state import COLLECTIVE, HELPER, INLINE, Device, Op, Piece, Place
from heron.runtime.thunks import CollectiveThunk, DeviceNumberThunk

if TYPE_CHECKING:
    from heron.codegen.native.program import ProgramWriter

#: the block at the end of a function in which a device stops
STOPPED = "stopped"
_ALIGNMENT = 64


def write_collective(writer: ProgramWriter, t: CollectiveThunk) -> None:
    """Call the code of collectives; leave the function where devices are to stop."""
    code = compiled.functions(HELPER)
    assert code is not None, "no code for collectives on this machine"
    number = len(writer.collectives)
    writer.collectives.append(str(t))
    writer.declare(COLLECTIVE, f"i32 @{COLLECTIVE}(ptr, ptr, ptr)", code[COLLECTIVE])
    op = _op(writer, t, number)
    writer.pack([f"ptr {writer.pointer(s)}" for s in (*t.operands, *t.results)])
    failed = writer.value(f"call i32 @{COLLECTIVE}(ptr {device(writer)}, ptr {op}, ptr %packed)")
    leave_if(writer, failed)


def write_number(writer: ProgramWriter, t: DeviceNumberThunk) -> None:
    """The device's partition or replica."""
    offset = (Device.partition if t.is_partition else Device.replica).offset
    number = writer.value(f"load i32, ptr {field(writer, offset)}")
    writer.line(f"store i32 {number}, ptr {writer.pointer(t.out)}")


def device(writer: ProgramWriter) -> str:
    """The address of the device that runs the program."""
    writer.needs_device = True
    return "%device"


def field(writer: ProgramWriter, offset: int) -> str:
    """The address of a field of that device."""
    return writer.value(f"getelementptr inbounds i8, ptr {device(writer)}, i64 {offset}")


def leave_if_failed(writer: ProgramWriter) -> None:
    """Leave the function where one that it called has left a collective without a result."""
    leave_if(writer, writer.value(f"load i32, ptr {field(writer, Device.failed.offset)}"))


def leave_if(writer: ProgramWriter, failed: str) -> None:
    """Leave the function unless a number is 0."""
    writer.stops = True
    test, on = writer.value(f"icmp ne i32 {failed}, 0"), writer.name("on")
    writer.line(f"br i1 {test}, label %{STOPPED}, label %{on}")
    writer.start(on)


# -- constants ---------------------------------------------------------------------------------------------------------
def _op(writer: ProgramWriter, t: CollectiveThunk, number: int) -> str:
    """The constant that describes a collective."""
    offsets = _inline_offsets(t)
    pieces = _constant(writer, "pieces", Piece, [_fields(p, o) for p, o in zip(t.pieces, offsets, strict=True)])
    values = {
        "number": number,
        "way": int(t.way),
        "arrays": len(t.operands),
        "inline": int(any(offsets)),
        "places": _constant(writer, "places", Place, _places(writer, t.groups, len(t.operands))),
        "senders": _numbers(writer, t.senders),
        "pieces": pieces,
        "reducers": _reducers(writer, t),
    }
    return _constant(writer, "op", Op, [values])


def _inline_offsets(t: CollectiveThunk) -> list[int]:
    """The places of operands in a slot behind the table of their addresses; zeros where they are not copied there."""
    none = [0] * len(t.operands)
    if t.way == Way.ALL_REDUCE:
        return none
    offsets: list[int] = []
    end = -(-8 * len(t.operands) // _ALIGNMENT) * _ALIGNMENT
    for piece in t.pieces:
        offsets.append(end)
        end += -(-piece.operand_bytes // _ALIGNMENT) * _ALIGNMENT
    return offsets if end <= INLINE else none


def fits_slot(operand_bytes: Sequence[int]) -> bool:
    """Whether arrays of those sizes fit into a slot, so that members need not wait for each other twice."""
    rounded = (-(-size // _ALIGNMENT) * _ALIGNMENT for size in (8 * len(operand_bytes), *operand_bytes))
    return sum(rounded) <= INLINE


def _fields(piece: Cut, offset: int) -> dict[str, int]:
    names = [f[0] for f in Piece._fields_ if f[0] != "offset"]
    return {**{name: getattr(piece, name) for name in names}, "offset": offset}


def _places(writer: ProgramWriter, groups: Sequence[Sequence[int]], arrays: int) -> list[dict[str, int]]:
    """For each device its clique, its rank there, and where the reducers begin that combine as many arrays."""
    found = [{"clique": -1, "rank": 0, "reducer": 0} for _ in range(writer.devices)]
    sizes = sorted({len(g) for g in groups})
    for group in groups:
        clique = writer.cliques.setdefault(tuple(group), len(writer.cliques))
        first = sizes.index(len(group)) * arrays
        for rank, number in enumerate(group):
            found[number] = {"clique": clique, "rank": rank, "reducer": first}
    return found


def _numbers(writer: ProgramWriter, values: Sequence[int]) -> str:
    if not values:
        return "null"
    return _global(writer, "senders", f"[{len(values)} x i32] [{', '.join(f'i32 {v}' for v in values)}]")


def _reducers(writer: ProgramWriter, t: CollectiveThunk) -> str:
    """The table of the functions that combine the members' operands."""
    if not t.reducers:
        return "null"
    names = [writer.range_of(name) for name in t.reducers]
    return _global(writer, "reducers", f"[{len(names)} x ptr] [{', '.join(f'ptr @{n}' for n in names)}]")


def _constant(
    writer: ProgramWriter, name: str, kind: type[ctypes.Structure], rows: Iterable[Mapping[str, object]]
) -> str:
    """The address of structures as a constant of the program."""
    types = [("ptr" if f[1] is ctypes.c_void_p else f"i{8 * ctypes.sizeof(f[1])}", f[0]) for f in kind._fields_]
    layout = "{ " + ", ".join(t for t, _ in types) + " }"
    items = ["{ " + ", ".join(f"{t} {row[field]}" for t, field in types) + " }" for row in rows]
    return _global(writer, name, f"[{len(items)} x {layout}] [{', '.join(f'{layout} {i}' for i in items)}]")


def _global(writer: ProgramWriter, name: str, value: str) -> str:
    """A constant, which equal ones share."""
    symbol = writer.tables.setdefault(value, f"@heron_{name}_{len(writer.tables)}")
    writer.declared.variable(f"{symbol} = private unnamed_addr constant {value}, align 8")
    return symbol
