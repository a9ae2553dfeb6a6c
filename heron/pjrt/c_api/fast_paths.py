"""Native code of the slots that are called most: running a small program, copying a small array in, and the end of
buffers made so.

Each fast path is a function that does all of the slot's work and gives true, or nothing and gives false: then the
slot's Python function, which is the definition, is called. Whatever looks unusual is left to Python. Arrays are
NumPy's; cells of buffers (`handles.BufferCell`) come from a list of free ones (`free_cells.py`), and go back to it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from heron.codegen.llvm.text import Function, Module
from heron.codegen.llvm.values import Value, View
from heron.hlo.ir import types
from heron.pjrt import element_types
from heron.pjrt.c_api import abi, free_cells, gate, handles
from heron.pjrt.c_api.free_cells import KINDS, Kind, shared
from heron.pjrt.c_api.gate import PYTHON
from heron.pjrt.c_api.handles import BufferCell, DeviceCell, EventCell, ExecutableCell, MemoryCell, PlanCell
from heron.runtime import numpy_api

#: NumPy's function that makes an array; it takes a reference to the dtype
EMPTY = "heron_array_empty"
_NEW_ARRAY = f"ptr @{EMPTY}(i32, ptr, ptr, i32)"

#: arrays of fewer bytes are copied, which takes less time than to tell their owner when they are no longer needed
SMALL = 1 << 14
#: arguments a program may have here: their addresses lie on the stack
MOST_ARGUMENTS = 1 << 12
#: the state of the event that is done and never destroyed, whose handle programs that are over give
ALWAYS_DONE = 3

_CELL = ctypes.sizeof(BufferCell)
_PRED = element_types.number(types.PRED)

#: writes a fast path, of a slot's arguments and the slot's Python function
Write = Callable[[Function, View, Value], None]


def has_path(name: str) -> bool:
    """Whether a slot has a fast path."""
    return name in _EVENTS or (name in _PATHS and numpy_api.known_layout())


def write(module: Module, name: str) -> None:
    """The fast path of a slot that has one, ``i1 @NAME.fast(ptr args, ptr function)``."""
    path = _EVENTS.get(name) or _PATHS[name]
    with module.function(f"internal i1 @{name}.fast(ptr %args, ptr %function) alwaysinline") as f:
        args, function = f.arguments
        path(f, f.view(args, abi.struct(f"{name}_Args")), function)


def write_shared(module: Module) -> None:
    """The functions that fast paths call, and `slots/quick.py` does."""
    if numpy_api.known_layout():
        free_cells.write(module)
        _write_run(module)


def _decline_unless(f: Function, *conditions: Value) -> None:
    """Leave the call to Python unless all conditions hold."""
    first, *others = conditions
    for condition in others:
        first = first & condition
    with f.unless(first):
        f.ret("false", "i1")


def _enter(f: Function) -> tuple[Value, str]:
    """Take Python's lock; the call is over when Python is going."""
    saved = f.slot(gate.SAVED)
    lock = f.call(gate.ENTER, saved)
    with f.when(lock.less(0)):
        f.ret("true", "i1")
    return lock, saved


# -- events ------------------------------------------------------------------------------------------------------------


def _event(answer: Callable[[Function, View], None]) -> Write:
    """A slot of an event that is done: its state is odd."""

    def path(f: Function, args: View, _: Value) -> None:
        _decline_unless(f, _state(f, args).cast("trunc", "i1"))
        answer(f, args)
        f.ret("true", "i1")

    return path


def _state(f: Function, args: View) -> Value:
    return f.load("i64", f.view(args.pointer("event"), EventCell).at("state"), order="acquire")


def _nothing(_: Function, __: View) -> None:
    pass


def _is_ready(_: Function, args: View) -> None:
    args["is_ready"] = 1


def _on_ready(f: Function, args: View) -> None:
    f.call(f"void {args.pointer('callback')}(ptr, ptr)", "null", args.pointer("user_arg"))


def _destroy_event(f: Function, args: View, _: Value) -> None:
    _decline_unless(f, _state(f, args).eq(ALWAYS_DONE))
    f.ret("true", "i1")


# -- buffers -----------------------------------------------------------------------------------------------------------


def _pointer(field: str) -> Write:
    """The address of the elements of a buffer's array, unless it was deleted."""

    def path(f: Function, args: View, _: Value) -> None:
        cell = f.view(args.pointer("buffer"), BufferCell)
        array = cell.pointer("array")
        _decline_unless(f, array.ne("null"), cell["is_deleted"].eq(0))
        args.set_pointer(field, f.view(array, numpy_api.Array)["data"])
        f.ret("true", "i1")

    return path


def _ready_event(f: Function, args: View, _: Value) -> None:
    """A buffer whose array is there has the event that is done."""
    _decline_unless(f, f.view(args.pointer("buffer"), BufferCell).pointer("array").ne("null"))
    args.set_pointer("event", shared(f)["done"])
    f.ret("true", "i1")


def _destroy(f: Function, args: View, function: Value) -> None:
    cell = f.view(args.pointer("buffer"), BufferCell)
    born = cell["born"]
    _decline_unless(f, born.ne(handles.PYTHONS))
    lock, saved = _enter(f)
    adopted, own = f.fork(born.eq(handles.ADOPTED))
    with adopted:  # Python has a handle of it
        f.call(gate.ASK, function, args.address)
    with own:
        f.call(PYTHON["Py_DecRef"], cell.pointer("array"))
        f.call(free_cells.DISCOUNT, cell.address, 0)
    f.call(free_cells.PUSH, cell.address)
    f.call(gate.LEAVE, lock, saved)
    f.ret("true", "i1")


def _from_host(f: Function, args: View, _: Value) -> None:
    type_ = args["type"]
    _decline_unless(f, type_.below(KINDS))
    kind = f.view(shared(f).at("kinds"), Kind, type_.cast("zext", "i64"))
    dtype, rank, data = kind["dtype"], args["num_dims"], args.pointer("data")
    usual = (dtype.ne("null"), rank.below(handles.MOST_DIMS + 1), args.pointer("device_layout").is_null())
    _decline_unless(f, *usual, data.ne("null"))
    memory = f.view(_memory(f, args), MemoryCell)
    counters = memory.pointer("counters")
    _decline_unless(f, counters.ne("null"))
    size = _dense_size(f, args, kind["size"])
    lock, saved = _enter(f)
    cell = f.call(free_cells.POP)
    with f.when(cell.is_null()):
        f.call(gate.LEAVE, lock, saved)
        f.ret("false", "i1")
    dims = args.pointer("dims")
    f.call(PYTHON["Py_IncRef"], dtype)
    array = f.call(_NEW_ARRAY, rank.cast("trunc", "i32"), dims, dtype, 0)
    with f.when(array.is_null()):
        f.call(PYTHON["PyErr_Clear"])
        f.call(free_cells.PUSH, cell)
        f.call(gate.LEAVE, lock, saved)
        f.ret("false", "i1")
    copy = f.view(array, numpy_api.Array)["data"]
    f.copy(copy, data, size)
    with f.when(type_.eq(_PRED)), f.loop(0, size) as n:  # a host's truth values may be any bytes but 0
        place = f.at(copy, n, "i8")
        f.store("i8", f.load("i8", place).ne(0).cast("zext", "i8"), place)
    f.fill(cell, 0, _CELL)
    made = f.view(cell, BufferCell)
    f.copy(made.at("own_dims"), dims, rank * 8)
    _fill(f, made, memory, array, counters)
    made["type"], made["num_dims"], made["size"] = type_, rank, size
    made.set_pointer("layout", shared(f)["layouts", rank])
    f.call(free_cells.COUNT, counters, 1, size, size)
    f.call(gate.LEAVE, lock, saved)
    args.set_pointer("buffer", cell)
    args.set_pointer("done_with_host_buffer", shared(f)["done"])
    f.ret("true", "i1")


def _fill(f: Function, made: View, memory: View, array: Value, counters: Value) -> None:
    """The fields of a new cell that do not depend on its shape."""
    made.set_pointer("device", f.load("ptr", memory.pointer("devices")))
    made.set_pointer("memory", memory.address)
    made.set_pointer("dims", made.at("own_dims"))
    made.set_pointer("array", array)
    made.set_pointer("counters", counters)
    made["is_on_cpu"], made["born"] = 1, handles.NATIVE


def _memory(f: Function, args: View) -> Value:
    """The memory that is asked for, or the default one of the device."""
    found = f.variable("ptr", args.pointer("memory"))
    with f.when(found.get().is_null()):
        found.set(f.view(args.pointer("device"), DeviceCell).pointer("default_memory"))
    return found.get()


def _dense_size(f: Function, args: View, item: Value) -> Value:
    """The bytes of an array that lies row-major, without gaps, and is small."""
    rank, dims, strides = args["num_dims"], args.pointer("dims"), args.pointer("byte_strides")
    is_plain = args["num_byte_strides"].eq(0)
    size = f.variable("i64", item)
    with f.loop(0, rank) as n:
        d = rank - n - 1
        before = size.get()
        size.set(before * f.load("i64", f.at(dims, d, "i64")))
        with f.unless(is_plain):
            _decline_unless(f, f.load("i64", f.at(strides, d, "i64")).eq(before))
        _decline_unless(f, size.get().below(SMALL))
    return size.get()


# -- programs ----------------------------------------------------------------------------------------------------------


def _execute(f: Function, args: View, _: Value) -> None:
    plan = f.view(args.pointer("executable"), ExecutableCell).pointer("plan")
    _decline_unless(f, plan.ne("null"))
    lock, saved = _enter(f)
    done = f.call("i1 @heron_run(ptr, ptr)", plan, args.address)
    f.call(gate.LEAVE, lock, saved)
    f.ret(done)


def _write_run(module: Module) -> None:
    """Run a plan: whether all is done; if not, nothing is."""
    with module.function("internal i1 @heron_run(ptr %plan, ptr %args) noinline") as f:
        plan = f.view(f.arguments[0], PlanCell)
        args = f.view(f.arguments[1], abi.struct("PJRT_LoadedExecutable_Execute_Args"))
        devices, count, outputs = plan["devices"], plan["arguments"], plan["outputs"]
        all_arguments, all_outputs = devices * count, devices * outputs
        device = args.pointer("execute_device")
        is_here = device.is_null() | device.eq(plan.pointer("device"))
        _decline_unless(f, args["num_devices"].eq(devices), args["num_args"].eq(count), is_here)
        values = f.op(f"alloca ptr, i64 {all_arguments}", "ptr")
        with f.loop(0, devices) as d:
            _collect(f, _row(f, args, "argument_lists", d), f.at(values, d * count, "ptr"), count)
        _each(f, PYTHON["Py_IncRef"], values, all_arguments)
        call = plan.pointer("call")
        result = f.call(f"ptr {call}(ptr, ptr, i64)", plan.pointer("self"), values, all_arguments)
        _each(f, PYTHON["Py_DecRef"], values, all_arguments)
        with f.when(result.is_null()):
            f.call(PYTHON["PyErr_Clear"])
            f.ret("false", "i1")
        known = shared(f)
        with f.when(result.eq(known["refusal"]) | known["free_count"].below(all_outputs)):
            f.call(PYTHON["Py_DecRef"], result)
            f.ret("false", "i1")
        events = args.pointer("device_complete_events")
        with f.loop(0, devices) as d:
            with f.loop(0, outputs) as n:
                cell = _output(f, plan, result, d * outputs + n)
                f.store("ptr", cell, f.at(_row(f, args, "output_lists", d), n, "ptr"))
            counters = f.load("ptr", f.at(plan.pointer("counters"), d, "ptr"))
            f.call(free_cells.COUNT, counters, outputs, plan["bytes"], plan["largest"])
            with f.when(events.ne("null")):
                f.store("ptr", known["done"], f.at(events, d, "ptr"))
        f.call(PYTHON["Py_DecRef"], result)
        f.ret("true", "i1")


def _row(f: Function, args: View, lists: str, device: Value) -> Value:
    """The list of a device's buffers."""
    return f.load("ptr", f.at(args.pointer(lists), device, "ptr"))


def _collect(f: Function, buffers: Value, values: Value, count: Value) -> None:
    """The arrays of a device's arguments, if they are there. While the program runs, their buffers may end, and the
    caller holds the arrays."""
    with f.loop(0, count) as n:
        cell = f.view(f.load("ptr", f.at(buffers, n, "ptr")), BufferCell)
        array = cell.pointer("array")
        _decline_unless(f, array.ne("null"), cell["is_deleted"].eq(0))
        f.store("ptr", array, f.at(values, n, "ptr"))


def _each(f: Function, signature: str, values: Value, count: Value) -> None:
    with f.loop(0, count) as n:
        f.call(signature, f.load("ptr", f.at(values, n, "ptr")))


def _output(f: Function, plan: View, result: Value, n: Value) -> Value:
    """The cell of an output: that of its model, with its array."""
    cell = f.call(free_cells.POP)
    f.copy(cell, f.at(plan.pointer("cells"), n, f"[{_CELL} x i8]"), _CELL)
    array = f.call(PYTHON["PyTuple_GetItem"], result, n)
    f.call(PYTHON["Py_IncRef"], array)
    made = f.view(cell, BufferCell)
    made.set_pointer("dims", made.at("own_dims"))
    made.set_pointer("array", array)
    return cell


_EVENTS: dict[str, Write] = {
    "PJRT_Event_IsReady": _event(_is_ready),
    "PJRT_Event_Error": _event(_nothing),
    "PJRT_Event_Await": _event(_nothing),
    "PJRT_Event_OnReady": _event(_on_ready),
    "PJRT_Event_Destroy": _destroy_event,
}
#: those that need to know how arrays lie in memory
_PATHS: dict[str, Write] = {
    "PJRT_Buffer_OpaqueDeviceMemoryDataPointer": _pointer("device_memory_ptr"),
    "PJRT_Buffer_UnsafePointer": _pointer("buffer_pointer"),
    "PJRT_Buffer_ReadyEvent": _ready_event,
    "PJRT_Buffer_Destroy": _destroy,
    "PJRT_Client_BufferFromHostBuffer": _from_host,
    "PJRT_LoadedExecutable_Execute": _execute,
}
