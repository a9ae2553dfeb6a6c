"""Cells of buffers that native code makes and ends without Python: a list of free ones, and what they are counted in.

Lists, counts and arrays are touched with Python's lock held only. `slots/quick.py` fills the list.
"""

from __future__ import annotations

import ctypes
from typing import Any

from heron.codegen.llvm.text import Function, Module
from heron.codegen.llvm.values import Value, View
from heron.pjrt.c_api import handles
from heron.pjrt.c_api.gate import PYTHON
from heron.pjrt.c_api.handles import BufferCell
from heron.pjrt.device import Counters

#: numbers of element types have room in a table of that many
KINDS = 64
_PTR, _I64 = ctypes.c_void_p, ctypes.c_int64


class Kind(ctypes.Structure):
    """The dtype of an element type, and the bytes of an element."""

    _fields_ = [("dtype", _PTR), ("size", _I64)]


class Shared(ctypes.Structure):
    """Data shared with native code: the first free cell, the numbers of free cells and of live buffers, element types
    by number, row-major layouts by rank, the finished event, and NotImplemented."""

    _fields_: list[tuple[str, Any]] = [
        *(("free", _PTR), ("free_count", _I64), ("live_count", _I64), ("kinds", Kind * KINDS)),
        *(("layouts", _PTR * (handles.MOST_DIMS + 1)), ("done", _PTR), ("refusal", _PTR)),
    ]


POP, PUSH = "ptr @heron_pop()", "void @heron_push(ptr)"
COUNT, DISCOUNT = "void @heron_count(ptr, i64, i64, i64)", "void @heron_discount(ptr, i64)"


def shared(f: Function) -> View:
    return f.view("@heron_shared", Shared)


def write(module: Module) -> None:
    """The functions of cells."""
    module.variable(f"@heron_shared = internal global [{ctypes.sizeof(Shared)} x i8] zeroinitializer, align 64")
    with module.function("ptr @heron_shared_words()") as f:
        f.ret("@heron_shared", "ptr")
    with module.function("internal ptr @heron_pop()") as f:
        known = shared(f)
        cell = known["free"]
        with f.when(cell.ne("null")):
            known["free"] = f.view(cell, BufferCell).pointer("next")
            known["free_count"] = known["free_count"] - 1
        f.ret(cell)
    with module.function("void @heron_push(ptr %cell)") as f:
        known, cell = shared(f), f.view(f.arguments[0], BufferCell)
        cell.set_pointer("next", known["free"])
        cell["born"] = handles.FREE
        known["free"] = cell.address
        known["free_count"] = known["free_count"] + 1
    _write_counting(module)
    with module.function("void @heron_adopt(ptr %cell)") as f:
        # whoever calls has a reference to its array, and counts it
        cell = f.view(f.arguments[0], BufferCell)
        cell["born"] = handles.ADOPTED
        f.call(PYTHON["Py_DecRef"], cell.pointer("array"))
        f.call(DISCOUNT, cell.address, 1)


def _write_counting(module: Module) -> None:
    """``heron_count``: buffers came that take so many bytes, the largest of them `largest`. ``heron_discount``: one
    buffer is no more, or is counted elsewhere from now on."""
    with module.function("internal void @heron_count(ptr %counters, i64 %number, i64 %bytes, i64 %largest)") as f:
        place, number, size, largest = f.arguments
        known, counters = shared(f), f.view(place, Counters)
        known["live_count"] = known["live_count"] + number
        counters["in_use"] = now = counters["in_use"] + size
        counters["peak"] = _larger(f, now + counters["others"], counters["peak"])
        counters["allocs"] = counters["allocs"] + number
        counters["largest"] = _larger(f, largest, counters["largest"])
    with module.function("internal void @heron_discount(ptr %cell, i64 %elsewhere)") as f:
        place, elsewhere = f.arguments
        known, cell = shared(f), f.view(place, BufferCell)
        counters = f.view(cell.pointer("counters"), Counters)
        known["live_count"] = known["live_count"] - 1
        counters["in_use"] = counters["in_use"] - cell["size"]
        counters["allocs"] = counters["allocs"] - elsewhere


def _larger(f: Function, a: Value, b: Value) -> Value:
    return f.call("i64 @llvm.smax.i64(i64, i64)", a, b)
