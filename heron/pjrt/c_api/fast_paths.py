"""LLVM text of what is asked most and needs no Python code: running a small program, copying a small array in, and the
end of buffers made so.

Each `shortcut` stands at the beginning of a slot's entry point. It does all of the slot's work, or nothing and goes on
to the slot's Python function, which is the definition: what looks unusual is Python's. Arrays are NumPy's; cells of
buffers (`handles.BufferCell`) come from a list of free ones that `slots/quick.py` fills, and go back to it. Lists,
counts and arrays are touched under Python's lock only.
"""

from __future__ import annotations

import ctypes
from typing import Any

from heron.codegen.llvm.declarations import declared
from heron.pjrt.c_api import abi, handles
from heron.pjrt.c_api.handles import BufferCell, DeviceCell, ExecutableCell, MemoryCell, PlanCell
from heron.pjrt.c_api.words import load, store
from heron.pjrt.device import Counters
from heron.runtime import numpy_api

#: functions of Python's stable interface the code calls
PYTHON = {
    "Py_IncRef": "void @Py_IncRef(ptr)",
    "PyTuple_GetItem": "ptr @PyTuple_GetItem(ptr, i64)",
}
#: NumPy's function that makes an array; it takes a reference to the dtype
EMPTY = "heron_array_empty"

#: arrays of fewer bytes are copied, which takes less time than to tell their owner when they are no longer needed
SMALL = 1 << 14
#: numbers of element types have room in a table of that many pairs (dtype, bytes of an element)
KINDS = 64
#: arguments a program may have here: their addresses lie on the stack
MOST_ARGUMENTS = 1 << 12

_C: Any = BufferCell
_CELL = ctypes.sizeof(BufferCell)
_N: Any = Counters


def _args(name: str) -> Any:
    return abi.struct(f"{name}_Args")


def shortcut(name: str) -> str:
    """The beginning of a slot's entry point, up to the label ``python``; nothing for most."""
    if not numpy_api.known_layout():
        return ""
    make = _SHORTCUTS.get(name)
    return "" if make is None else make(_args(name))


def _execute(args: Any) -> str:
    return f"""
  %saved = alloca [3 x ptr]
{load("executable", "ptr", "args", args.executable.offset)}
{load("plan", "ptr", "executable", ExecutableCell.plan.offset)}
  %unplanned = icmp eq ptr %plan, null
  br i1 %unplanned, label %python, label %planned
planned:
  %lock = call i32 @heron_enter(ptr %saved)
  %ending = icmp slt i32 %lock, 0
  br i1 %ending, label %away, label %run
run:
  %done = call i1 @heron_run(ptr %plan, ptr %args)
  call void @heron_leave(i32 %lock, ptr %saved)
  br i1 %done, label %away, label %python
away:
  ret ptr null
python:
"""


def _from_host(args: Any) -> str:
    return f"""
  %saved = alloca [3 x ptr]
{load("type", "i32", "args", args.type.offset)}
  %known = icmp ult i32 %type, {KINDS}
  br i1 %known, label %typed, label %python
typed:
  %type64 = zext i32 %type to i64
  %kind = getelementptr [2 x i64], ptr @heron_kinds, i64 %type64
  %dtype = load ptr, ptr %kind
{load("item", "i64", "kind", 8)}
{load("rank", "i64", "args", args.num_dims.offset)}
{load("layout", "ptr", "args", args.device_layout.offset)}
{load("data", "ptr", "args", args.data.offset)}
{load("dims", "ptr", "args", args.dims.offset)}
{load("strides", "ptr", "args", args.byte_strides.offset)}
{load("strided", "i64", "args", args.num_byte_strides.offset)}
{load("given", "ptr", "args", args.memory.offset)}
  %has.dtype = icmp ne ptr %dtype, null
  %is.small = icmp ule i64 %rank, {handles.MOST_DIMS}
  %no.layout = icmp eq ptr %layout, null
  %has.data = icmp ne ptr %data, null
  %usual.0 = and i1 %has.dtype, %is.small
  %usual.1 = and i1 %no.layout, %has.data
  %usual = and i1 %usual.0, %usual.1
  br i1 %usual, label %where, label %python
where:
  %no.memory = icmp eq ptr %given, null
  br i1 %no.memory, label %of.device, label %found
of.device:
{load("device", "ptr", "args", args.device.offset)}
{load("default", "ptr", "device", DeviceCell.default_memory.offset)}
  br label %found
found:
  %memory = phi ptr [ %given, %where ], [ %default, %of.device ]
{load("counters", "ptr", "memory", MemoryCell.counters.offset)}
  %uncounted = icmp eq ptr %counters, null
  br i1 %uncounted, label %python, label %measure
measure: ; its elements lie row-major, without gaps
  %n = phi i64 [ %rank, %found ], [ %n.next, %dense ]
  %bytes = phi i64 [ %item, %found ], [ %bytes.next, %dense ]
  %measured = icmp eq i64 %n, 0
  br i1 %measured, label %sized, label %dimension
dimension:
  %n.next = sub i64 %n, 1
  %d.at = getelementptr i64, ptr %dims, i64 %n.next
  %d = load i64, ptr %d.at
  %bytes.next = mul i64 %bytes, %d
  %plain = icmp eq i64 %strided, 0
  br i1 %plain, label %dense, label %stride
stride:
  %s.at = getelementptr i64, ptr %strides, i64 %n.next
  %s = load i64, ptr %s.at
  %is.dense = icmp eq i64 %s, %bytes
  br i1 %is.dense, label %dense, label %python
dense:
  %fits = icmp ult i64 %bytes.next, {SMALL}
  br i1 %fits, label %measure, label %python
sized:
  %lock = call i32 @heron_enter(ptr %saved)
  %ending = icmp slt i32 %lock, 0
  br i1 %ending, label %away, label %make
make:
  %cell = call ptr @heron_pop()
  %none = icmp eq ptr %cell, null
  br i1 %none, label %leave, label %array
array:
  %rank32 = trunc i64 %rank to i32
  call void @Py_IncRef(ptr %dtype)
  %made = call ptr @{EMPTY}(i32 %rank32, ptr %dims, ptr %dtype, i32 0)
  %short = icmp eq ptr %made, null
  br i1 %short, label %give.back, label %fill
give.back:
  call void @PyErr_Clear()
  call void @heron_push(ptr %cell)
  br label %leave
leave:
  call void @heron_leave(i32 %lock, ptr %saved)
  br label %python
fill:
{load("elements", "ptr", "made", numpy_api.Array.data.offset)}
  call void @llvm.memcpy.p0.p0.i64(ptr %elements, ptr %data, i64 %bytes, i1 false)
  call void @llvm.memset.p0.i64(ptr %cell, i8 0, i64 {_CELL}, i1 false)
{load("devices", "ptr", "memory", MemoryCell.devices.offset)}
  %home = load ptr, ptr %devices
  %layout.at.rank = getelementptr ptr, ptr @heron_layouts, i64 %rank
  %row.major = load ptr, ptr %layout.at.rank
  %own.dims = getelementptr i8, ptr %cell, i64 {_C.own_dims.offset}
  %dims.bytes = mul i64 %rank, 8
  call void @llvm.memcpy.p0.p0.i64(ptr %own.dims, ptr %dims, i64 %dims.bytes, i1 false)
{store("%home", "ptr", "cell", _C.device.offset)}
{store("%memory", "ptr", "cell", _C.memory.offset)}
{store("%type", "i32", "cell", _C.type.offset)}
{store("1", "i8", "cell", _C.is_on_cpu.offset)}
{store("%own.dims", "ptr", "cell", _C.dims.offset)}
{store("%rank", "i64", "cell", _C.num_dims.offset)}
{store("%bytes", "i64", "cell", _C.size.offset)}
{store("%row.major", "ptr", "cell", _C.layout.offset)}
{store("%made", "ptr", "cell", _C.array.offset)}
{store(str(handles.NATIVE), "i64", "cell", _C.born.offset)}
{store("%counters", "ptr", "cell", _C.counters.offset)}
  call void @heron_count(ptr %counters, i64 1, i64 %bytes, i64 %bytes)
  call void @heron_leave(i32 %lock, ptr %saved)
{store("%cell", "ptr", "args", args.buffer.offset)}
  %over = load ptr, ptr @heron_done
{store("%over", "ptr", "args", args.done_with_host_buffer.offset)}
  br label %away
away:
  ret ptr null
python:
"""


def _destroy(args: Any) -> str:
    return f"""
  %saved = alloca [3 x ptr]
{load("cell", "ptr", "args", args.buffer.offset)}
{load("born", "i64", "cell", _C.born.offset)}
  %pythons = icmp eq i64 %born, {handles.PYTHONS}
  br i1 %pythons, label %python, label %ours
ours:
  %lock = call i32 @heron_enter(ptr %saved)
  %ending = icmp slt i32 %lock, 0
  br i1 %ending, label %away, label %whose
whose:
  %adopted = icmp eq i64 %born, {handles.ADOPTED}
  br i1 %adopted, label %tell, label %drop
tell: ; Python has a handle of it
  call ptr @heron_ask(ptr %function, ptr %args)
  br label %free
drop:
{load("array", "ptr", "cell", _C.array.offset)}
  call void @Py_DecRef(ptr %array)
  call void @heron_discount(ptr %cell, i64 0)
  br label %free
free:
  call void @heron_push(ptr %cell)
  call void @heron_leave(i32 %lock, ptr %saved)
  br label %away
away:
  ret ptr null
python:
"""


def _ready_event(args: Any) -> str:
    """A buffer whose array is there has the event that is done."""
    return f"""
{load("cell", "ptr", "args", args.buffer.offset)}
{load("array", "ptr", "cell", _C.array.offset)}
  %absent = icmp eq ptr %array, null
  br i1 %absent, label %python, label %there
there:
  %over = load ptr, ptr @heron_done
{store("%over", "ptr", "args", args.event.offset)}
  ret ptr null
python:
"""


_SHORTCUTS = {
    "PJRT_LoadedExecutable_Execute": _execute,
    "PJRT_Client_BufferFromHostBuffer": _from_host,
    "PJRT_Buffer_Destroy": _destroy,
    "PJRT_Buffer_ReadyEvent": _ready_event,
}


def text() -> str:
    """The functions shortcuts call, and those `slots/quick.py` does; ``heron_enter``, ``heron_leave``, ``heron_ask``
    and Python's functions are declared elsewhere."""
    if not numpy_api.known_layout():
        return ""
    return f"{_MEMORY}{_run(_args('PJRT_LoadedExecutable_Execute'))}"


_MEMORY = f"""
@heron_free = internal global ptr null
@heron_free_count = internal global i64 0
@heron_live_count = internal global i64 0
@heron_kinds = internal global [{KINDS} x [2 x i64]] zeroinitializer
@heron_layouts = internal global [{handles.MOST_DIMS + 1} x ptr] zeroinitializer
@heron_done = internal global ptr null

{declared(f"ptr @{EMPTY}(i32, ptr, ptr, i32)")}

define ptr @heron_table_of_kinds() {{
  ret ptr @heron_kinds
}}

; row-major layouts by rank, the event that is done, and NotImplemented
define void @heron_set_up(ptr %layouts, ptr %done, ptr %refusal) {{
  call void @llvm.memcpy.p0.p0.i64(ptr @heron_layouts, ptr %layouts, i64 {8 * (handles.MOST_DIMS + 1)}, i1 false)
  store ptr %done, ptr @heron_done
  store ptr %refusal, ptr @heron_refusal
  ret void
}}
@heron_refusal = internal global ptr null

define i64 @heron_free_cells() {{
  %count = load i64, ptr @heron_free_count
  ret i64 %count
}}

define i64 @heron_live_cells() {{
  %count = load i64, ptr @heron_live_count
  ret i64 %count
}}

define internal ptr @heron_pop() {{
  %cell = load ptr, ptr @heron_free
  %none = icmp eq ptr %cell, null
  br i1 %none, label %over, label %take
take:
{load("rest", "ptr", "cell", _C.next.offset)}
  store ptr %rest, ptr @heron_free
  %free = load i64, ptr @heron_free_count
  %less = sub i64 %free, 1
  store i64 %less, ptr @heron_free_count
  br label %over
over:
  ret ptr %cell
}}

; also how new cells become free
define void @heron_push(ptr %cell) {{
  %rest = load ptr, ptr @heron_free
{store("%rest", "ptr", "cell", _C.next.offset)}
{store(str(handles.FREE), "i64", "cell", _C.born.offset)}
  store ptr %cell, ptr @heron_free
  %free = load i64, ptr @heron_free_count
  %more = add i64 %free, 1
  store i64 %more, ptr @heron_free_count
  ret void
}}

; buffers came that take so many bytes, the largest of them `largest`
define internal void @heron_count(ptr %counters, i64 %number, i64 %bytes, i64 %largest) {{
  %live = load i64, ptr @heron_live_count
  %more = add i64 %live, %number
  store i64 %more, ptr @heron_live_count
{load("in.use", "i64", "counters", _N.in_use.offset)}
{load("others", "i64", "counters", _N.others.offset)}
{load("peak", "i64", "counters", _N.peak.offset)}
{load("allocs", "i64", "counters", _N.allocs.offset)}
{load("most", "i64", "counters", _N.largest.offset)}
  %now = add i64 %in.use, %bytes
  %all = add i64 %now, %others
  %higher = call i64 @llvm.smax.i64(i64 %all, i64 %peak)
  %larger = call i64 @llvm.smax.i64(i64 %largest, i64 %most)
  %allocs.now = add i64 %allocs, %number
{store("%now", "i64", "counters", _N.in_use.offset)}
{store("%higher", "i64", "counters", _N.peak.offset)}
{store("%allocs.now", "i64", "counters", _N.allocs.offset)}
{store("%larger", "i64", "counters", _N.largest.offset)}
  ret void
}}

; one buffer is no more, or is counted elsewhere from now on
define internal void @heron_discount(ptr %cell, i64 %elsewhere) {{
  %live = load i64, ptr @heron_live_count
  %less = sub i64 %live, 1
  store i64 %less, ptr @heron_live_count
{load("counters", "ptr", "cell", _C.counters.offset)}
{load("size", "i64", "cell", _C.size.offset)}
{load("in.use", "i64", "counters", _N.in_use.offset)}
{load("allocs", "i64", "counters", _N.allocs.offset)}
  %now = sub i64 %in.use, %size
  %allocs.now = sub i64 %allocs, %elsewhere
{store("%now", "i64", "counters", _N.in_use.offset)}
{store("%allocs.now", "i64", "counters", _N.allocs.offset)}
  ret void
}}

; a cell becomes `ADOPTED`: whoever calls has a reference to its array, and counts it
define void @heron_adopt(ptr %cell) {{
{store(str(handles.ADOPTED), "i64", "cell", _C.born.offset)}
{load("array", "ptr", "cell", _C.array.offset)}
  call void @Py_DecRef(ptr %array)
  call void @heron_discount(ptr %cell, i64 1)
  ret void
}}
"""


def _run(args: Any) -> str:
    """Run a plan: whether all is done; if not, nothing is."""
    return f"""
define internal i1 @heron_run(ptr %plan, ptr %args) noinline {{
entry:
{load("call", "ptr", "plan", PlanCell.call.offset)}
{load("self", "ptr", "plan", PlanCell.self.offset)}
{load("arguments", "i64", "plan", PlanCell.arguments.offset)}
{load("home", "ptr", "plan", PlanCell.device.offset)}
{load("outputs", "i64", "plan", PlanCell.outputs.offset)}
{load("cells", "ptr", "plan", PlanCell.cells.offset)}
{load("counters", "ptr", "plan", PlanCell.counters.offset)}
{load("bytes", "i64", "plan", PlanCell.bytes.offset)}
{load("largest", "i64", "plan", PlanCell.largest.offset)}
{load("devices", "i64", "args", args.num_devices.offset)}
{load("given", "i64", "args", args.num_args.offset)}
{load("device", "ptr", "args", args.execute_device.offset)}
{load("lists", "ptr", "args", args.argument_lists.offset)}
{load("rows", "ptr", "args", args.output_lists.offset)}
{load("events", "ptr", "args", args.device_complete_events.offset)}
  %one = icmp eq i64 %devices, 1
  %all = icmp eq i64 %given, %arguments
  %any = icmp eq ptr %device, null
  %same = icmp eq ptr %device, %home
  %here = or i1 %any, %same
  %usual.0 = and i1 %one, %all
  %usual = and i1 %usual.0, %here
  br i1 %usual, label %begin, label %no
begin:
  %values = alloca ptr, i64 %arguments
  %list = load ptr, ptr %lists
  %row = load ptr, ptr %rows
  br label %collect
collect: ; arrays that are there
  %n = phi i64 [ 0, %begin ], [ %n.next, %there ]
  %collected = icmp eq i64 %n, %arguments
  br i1 %collected, label %hold, label %look
look:
  %buffer.at = getelementptr ptr, ptr %list, i64 %n
  %buffer = load ptr, ptr %buffer.at
{load("array", "ptr", "buffer", _C.array.offset)}
{load("deleted", "i8", "buffer", _C.is_deleted.offset)}
  %is.array = icmp ne ptr %array, null
  %is.kept = icmp eq i8 %deleted, 0
  %is.there = and i1 %is.array, %is.kept
  br i1 %is.there, label %there, label %no
there:
  %value.at = getelementptr ptr, ptr %values, i64 %n
  store ptr %array, ptr %value.at
  %n.next = add i64 %n, 1
  br label %collect
hold: ; while the program runs, their buffers may end
  %h = phi i64 [ 0, %collect ], [ %h.next, %holding ]
  %held = icmp eq i64 %h, %arguments
  br i1 %held, label %go, label %holding
holding:
  %h.at = getelementptr ptr, ptr %values, i64 %h
  %h.array = load ptr, ptr %h.at
  call void @Py_IncRef(ptr %h.array)
  %h.next = add i64 %h, 1
  br label %hold
go:
  %result = call ptr %call(ptr %self, ptr %values, i64 %arguments)
  br label %release
release:
  %r = phi i64 [ 0, %go ], [ %r.next, %releasing ]
  %released = icmp eq i64 %r, %arguments
  br i1 %released, label %look.at, label %releasing
releasing:
  %r.at = getelementptr ptr, ptr %values, i64 %r
  %r.array = load ptr, ptr %r.at
  call void @Py_DecRef(ptr %r.array)
  %r.next = add i64 %r, 1
  br label %release
look.at:
  %raised = icmp eq ptr %result, null
  br i1 %raised, label %forget, label %ran
forget:
  call void @PyErr_Clear()
  br label %no
ran:
  %refusal = load ptr, ptr @heron_refusal
  %refused = icmp eq ptr %result, %refusal
  %free = load i64, ptr @heron_free_count
  %too.few = icmp ult i64 %free, %outputs
  %unfit = or i1 %refused, %too.few
  br i1 %unfit, label %drop, label %give
drop:
  call void @Py_DecRef(ptr %result)
  br label %no
give:
  %m = phi i64 [ 0, %ran ], [ %m.next, %put ]
  %given.all = icmp eq i64 %m, %outputs
  br i1 %given.all, label %finish, label %put
put:
  %cell = call ptr @heron_pop()
  %model.offset = mul i64 %m, {_CELL}
  %model = getelementptr i8, ptr %cells, i64 %model.offset
  call void @llvm.memcpy.p0.p0.i64(ptr %cell, ptr %model, i64 {_CELL}, i1 false)
  %own.dims = getelementptr i8, ptr %cell, i64 {_C.own_dims.offset}
  %output = call ptr @PyTuple_GetItem(ptr %result, i64 %m)
  call void @Py_IncRef(ptr %output)
{store("%own.dims", "ptr", "cell", _C.dims.offset)}
{store("%output", "ptr", "cell", _C.array.offset)}
  %to = getelementptr ptr, ptr %row, i64 %m
  store ptr %cell, ptr %to
  %m.next = add i64 %m, 1
  br label %give
finish:
  call void @heron_count(ptr %counters, i64 %outputs, i64 %bytes, i64 %largest)
  call void @Py_DecRef(ptr %result)
  %no.events = icmp eq ptr %events, null
  br i1 %no.events, label %yes, label %tell
tell:
  %over = load ptr, ptr @heron_done
  store ptr %over, ptr %events
  br label %yes
yes:
  ret i1 true
no:
  ret i1 false
}}
"""
