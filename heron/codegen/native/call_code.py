"""LLVM text of how Python calls a compiled program: a C function that checks arguments, makes outputs and runs it.

It knows nothing of the program but a `PLAN` of words. What it does not take (another type, dtype or shape than planned,
arguments with gaps or on top of each other, no memory, scratch in use by another thread) it refuses: it gives
NotImplemented, having done nothing, and Python finds out what is the matter.
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Mapping

import numpy as np

from heron.codegen.llvm.declarations import declared
from heron.codegen.native.common_code import for_good
from heron.runtime import numpy_api
from heron.runtime.cpu.call import CALL, Argument, Output, Plan

#: functions of Python's stable interface the code calls
PYTHON = (
    "PyCapsule_GetPointer",
    "PyTuple_New",
    "PyTuple_SetItem",
    "PyTuple_GetItem",
    "Py_IncRef",
    "Py_DecRef",
    "PyErr_Clear",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
)
EMPTY, SET_HANDLER = "heron_array_empty", "heron_set_handler"
_EXTERNALS = declared(
    "ptr @PyCapsule_GetPointer(ptr, ptr)",
    "ptr @PyTuple_New(i64)",
    "i32 @PyTuple_SetItem(ptr, i64, ptr)",
    "ptr @PyTuple_GetItem(ptr, i64)",
    "void @Py_IncRef(ptr)",
    "void @Py_DecRef(ptr)",
    "void @PyErr_Clear()",
    "ptr @PyEval_SaveThread()",
    "void @PyEval_RestoreThread(ptr)",
    f"ptr @{EMPTY}(i32, ptr, ptr, i32)",
    f"ptr @{SET_HANDLER}(ptr)",
)


def make() -> Mapping[str, int] | None:
    """The address of the function; None where arrays do not lie as it expects."""
    if platform.system() != "Linux" or platform.machine() not in ("x86_64", "aarch64") or not numpy_api.known_layout():
        return None
    symbols = {name: ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in PYTHON}
    for name, place in ((EMPTY, numpy_api.EMPTY), (SET_HANDLER, numpy_api.SET_HANDLER)):
        symbols[name] = numpy_api.function(place) or 0
    if not all(symbols.values()):
        return None
    return for_good("call", text(id(np.ndarray), id(NotImplemented)), symbols)


def _word(owner: type[ctypes.Structure], name: str, base: str, to: str, type_: str = "i64") -> str:
    """Load a named word of a structure."""
    place = f"%at.{to} = getelementptr i8, ptr {base}, i64 {getattr(owner, name).offset}"
    return f"  {place}\n  %{to} = load {type_}, ptr %at.{to}"


def _plan(name: str, type_: str = "i64") -> str:
    return _word(Plan, name, "%plan", name, type_)


def _argument(name: str, type_: str = "i64") -> str:
    return _word(Argument, name, "%a", f"a.{name}", type_)


def _output(name: str, type_: str = "i64") -> str:
    return _word(Output, name, "%o", f"o.{name}", type_)


def _field(offset: int, base: str, to: str, type_: str) -> str:
    """Load a field of a Python object."""
    return f"  %at.{to} = getelementptr i8, ptr {base}, i64 {offset}\n  %{to} = load {type_}, ptr %at.{to}"


def text(array_type: int, refusal: int) -> str:
    """The code; ``array_type``, ``refusal``: addresses of `numpy.ndarray` and NotImplemented."""
    n = numpy_api
    return f"""
{_EXTERNALS}

define ptr @{CALL}(ptr %self, ptr %values, i64 %count) nounwind {{
entry:
  %plan = call ptr @PyCapsule_GetPointer(ptr %self, ptr null)
{_plan("program", "ptr")}
{_plan("arguments")}
{_plan("argument", "ptr")}
{_plan("outputs")}
{_plan("output", "ptr")}
{_plan("allocations")}
{_plan("table", "ptr")}
  %at.busy = getelementptr i64, ptr %plan, i64 {Plan.busy.offset // 8}
  %all = icmp eq i64 %count, %arguments
  br i1 %all, label %check, label %refuse

check: ; every argument is an array as planned
  %n = phi i64 [ 0, %entry ], [ %n.next, %fits ]
  %checked = icmp eq i64 %n, %arguments
  br i1 %checked, label %apart, label %look

look:
  %a.n = mul i64 %n, {ctypes.sizeof(Argument) // 8}
  %a = getelementptr i64, ptr %argument, i64 %a.n
{_argument("dtype", "ptr")}
{_argument("rank")}
{_argument("dims", "ptr")}
{_argument("flags")}
  %at.value = getelementptr ptr, ptr %values, i64 %n
  %value = load ptr, ptr %at.value
{_field(n.TYPE, "%value", "type", "i64")}
  %array = icmp eq i64 %type, {array_type}
  br i1 %array, label %inside, label %refuse

inside:
{_field(n.DTYPE, "%value", "dtype", "ptr")}
{_field(n.RANK, "%value", "rank32", "i32")}
{_field(n.DIMS, "%value", "dims", "ptr")}
{_field(n.FLAGS, "%value", "flags32", "i32")}
  %rank = sext i32 %rank32 to i64
  %flags = zext i32 %flags32 to i64
  %have = and i64 %flags, %a.flags
  %ok.dtype = icmp eq ptr %dtype, %a.dtype
  %ok.rank = icmp eq i64 %rank, %a.rank
  %ok.flags = icmp eq i64 %have, %a.flags
  %ok.two = and i1 %ok.dtype, %ok.rank
  %ok = and i1 %ok.two, %ok.flags
  br i1 %ok, label %sizes, label %refuse

sizes:
  %d = phi i64 [ 0, %inside ], [ %d.next, %size ]
  %sized = icmp eq i64 %d, %rank
  br i1 %sized, label %fits, label %size

size:
  %at.wanted = getelementptr i64, ptr %a.dims, i64 %d
  %at.given = getelementptr i64, ptr %dims, i64 %d
  %wanted = load i64, ptr %at.wanted
  %given = load i64, ptr %at.given
  %d.next = add i64 %d, 1
  %equal = icmp eq i64 %wanted, %given
  br i1 %equal, label %sizes, label %refuse

fits:
  %n.next = add i64 %n, 1
  br label %check

apart: ; none shares memory with one that is overwritten
  %g = phi i64 [ 0, %check ], [ %g.next, %next ]
  %separate = icmp eq i64 %g, %arguments
  br i1 %separate, label %reserve, label %whose

whose:
  %g.n = mul i64 %g, {ctypes.sizeof(Argument) // 8}
  %g.a = getelementptr i64, ptr %argument, i64 %g.n
{_word(Argument, "given", "%g.a", "g.given")}
{_word(Argument, "bytes", "%g.a", "g.bytes")}
  %at.g.value = getelementptr ptr, ptr %values, i64 %g
  %g.value = load ptr, ptr %at.g.value
{_field(n.DATA, "%g.value", "g.data", "i64")}
  %g.end = add i64 %g.data, %g.bytes
  %g.stays = icmp eq i64 %g.given, 0
  br i1 %g.stays, label %next, label %others

others:
  %h = phi i64 [ 0, %whose ], [ %h.next, %distinct ]
  %compared = icmp eq i64 %h, %arguments
  br i1 %compared, label %next, label %other

other:
  %h.n = mul i64 %h, {ctypes.sizeof(Argument) // 8}
  %h.a = getelementptr i64, ptr %argument, i64 %h.n
{_word(Argument, "bytes", "%h.a", "h.bytes")}
  %at.h.value = getelementptr ptr, ptr %values, i64 %h
  %h.value = load ptr, ptr %at.h.value
{_field(n.DATA, "%h.value", "h.data", "i64")}
  %h.end = add i64 %h.data, %h.bytes
  %before.end = icmp ult i64 %g.data, %h.end
  %after.start = icmp ult i64 %h.data, %g.end
  %not.itself = icmp ne i64 %g, %h
  %overlap = and i1 %before.end, %after.start
  %share = and i1 %overlap, %not.itself
  br i1 %share, label %refuse, label %distinct

distinct:
  %h.next = add i64 %h, 1
  br label %others

next:
  %g.next = add i64 %g, 1
  br label %apart

reserve: ; scratch belongs to one call at a time
  %use = load i64, ptr %at.busy
  %none = icmp slt i64 %use, 0
  br i1 %none, label %go, label %take

take:
  %exchange = cmpxchg ptr %at.busy, i64 0, i64 1 acquire monotonic
  %mine = extractvalue {{ i64, i1 }} %exchange, 1
  br i1 %mine, label %go, label %refuse

go:
  %buffers = alloca ptr, i64 %allocations, align 16
  %table.bytes = mul i64 %allocations, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %buffers, ptr %table, i64 %table.bytes, i1 false)
  %result = call ptr @PyTuple_New(i64 %outputs)
  %short = icmp eq ptr %result, null
  br i1 %short, label %failed, label %place

place: ; arguments into the table
  %p = phi i64 [ 0, %go ], [ %p.next, %put ]
  %placed = icmp eq i64 %p, %arguments
  br i1 %placed, label %make, label %put

put:
  %p.n = mul i64 %p, {ctypes.sizeof(Argument) // 8}
  %p.a = getelementptr i64, ptr %argument, i64 %p.n
{_word(Argument, "allocation", "%p.a", "p.allocation")}
  %at.p.value = getelementptr ptr, ptr %values, i64 %p
  %p.value = load ptr, ptr %at.p.value
{_field(n.DATA, "%p.value", "p.data", "ptr")}
  %p.slot = getelementptr ptr, ptr %buffers, i64 %p.allocation
  store ptr %p.data, ptr %p.slot
  %p.next = add i64 %p, 1
  br label %place

make: ; outputs
  %m = phi i64 [ 0, %place ], [ %m.next, %made ]
  %ready = icmp eq i64 %m, %outputs
  br i1 %ready, label %run, label %one

one:
  %o.n = mul i64 %m, {ctypes.sizeof(Output) // 8}
  %o = getelementptr i64, ptr %output, i64 %o.n
{_output("dtype", "ptr")}
{_output("rank")}
{_output("dims", "ptr")}
{_output("allocation")}
{_output("bytes")}
{_output("same")}
{_output("origin")}
{_output("given")}
{_output("handler", "ptr")}
  %is.same = icmp sge i64 %o.same, 0
  br i1 %is.same, label %again, label %own

again: ; the array of an earlier output
  %earlier = call ptr @PyTuple_GetItem(ptr %result, i64 %o.same)
  call void @Py_IncRef(ptr %earlier)
  br label %made

own:
  %at.origin = getelementptr ptr, ptr %values, i64 %o.origin
  %is.given = icmp ne i64 %o.given, 0
  br i1 %is.given, label %reuse, label %fresh

reuse: ; the argument itself
  %old = load ptr, ptr %at.origin
  call void @Py_IncRef(ptr %old)
  br label %made

fresh:
  call void @Py_IncRef(ptr %o.dtype)
  %o.rank32 = trunc i64 %o.rank to i32
  %plain = icmp eq ptr %o.handler, null
  br i1 %plain, label %usual, label %special

usual:
  %array.usual = call ptr @{EMPTY}(i32 %o.rank32, ptr %o.dims, ptr %o.dtype, i32 0)
  br label %got

special:
  %before = call ptr @{SET_HANDLER}(ptr %o.handler)
  %array.special = call ptr @{EMPTY}(i32 %o.rank32, ptr %o.dims, ptr %o.dtype, i32 0)
  %now = call ptr @{SET_HANDLER}(ptr %before)
  call void @Py_DecRef(ptr %before)
  call void @Py_DecRef(ptr %now)
  br label %got

got:
  %new = phi ptr [ %array.usual, %usual ], [ %array.special, %special ]
  %missing = icmp eq ptr %new, null
  br i1 %missing, label %undo, label %there

there:
{_field(n.DATA, "%new", "o.data", "ptr")}
  %o.slot = getelementptr ptr, ptr %buffers, i64 %o.allocation
  store ptr %o.data, ptr %o.slot
  %begins = icmp sge i64 %o.origin, 0
  br i1 %begins, label %fill, label %made

fill:
  %first = load ptr, ptr %at.origin
{_field(n.DATA, "%first", "first.data", "ptr")}
  call void @llvm.memcpy.p0.p0.i64(ptr %o.data, ptr %first.data, i64 %o.bytes, i1 false)
  br label %made

made:
  %item = phi ptr [ %earlier, %again ], [ %old, %reuse ], [ %new, %there ], [ %new, %fill ]
  %set = call i32 @PyTuple_SetItem(ptr %result, i64 %m, ptr %item)
  %m.next = add i64 %m, 1
  br label %make

run:
  %thread = call ptr @PyEval_SaveThread()
  call void %program(ptr %buffers)
  call void @PyEval_RestoreThread(ptr %thread)
  br i1 %none, label %done, label %release

release:
  store atomic i64 0, ptr %at.busy release, align 8
  br label %done

done:
  ret ptr %result

undo:
  call void @Py_DecRef(ptr %result)
  br label %failed

failed:
  call void @PyErr_Clear()
  br i1 %none, label %refuse, label %free

free:
  store atomic i64 0, ptr %at.busy release, align 8
  br label %refuse

refuse:
  call void @Py_IncRef(ptr inttoptr (i64 {refusal} to ptr))
  ret ptr inttoptr (i64 {refusal} to ptr)
}}
"""
