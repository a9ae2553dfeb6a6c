"""The native side of the C interface, as LLVM text: entry points, and getters that need no Python.

C++ may call from any thread, with or without Python's lock, while an exception is being raised, and after Python has
ended. An entry point therefore returns at once when Python is going (`ending.py`), takes the lock, puts a pending
exception aside and calls the slot's Python function with the address of the arguments. That gives 0 or the address of
an error, as a negative number where it was Ctrl-C: Python is told again when it is back, whatever C++ made of the
error. A getter copies fields from the handle's cell (`handles.py`) to the arguments.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from typing import Any

from heron.codegen.llvm.declarations import declared
from heron.once import once
from heron.pjrt.c_api import abi, fast_paths, handles
from heron.pjrt.c_api.words import load, store
from heron.runtime import numpy_api

#: Python's own functions that entry points call, as LLVM declares them
_PYTHON = {
    "Py_DecRef": "void @Py_DecRef(ptr)",
    "PyErr_Clear": "void @PyErr_Clear()",
    "PyErr_ExceptionMatches": "i32 @PyErr_ExceptionMatches(ptr)",
    "PyErr_Fetch": "void @PyErr_Fetch(ptr, ptr, ptr)",
    "PyErr_Restore": "void @PyErr_Restore(ptr, ptr, ptr)",
    "PyErr_SetInterrupt": "void @PyErr_SetInterrupt()",
    "PyGILState_Ensure": "i32 @PyGILState_Ensure()",
    "PyGILState_Release": "void @PyGILState_Release(i32)",
    "PyLong_AsVoidPtr": "ptr @PyLong_AsVoidPtr(ptr)",
    "PyLong_FromVoidPtr": "ptr @PyLong_FromVoidPtr(ptr)",
    "PyObject_CallOneArg": "ptr @PyObject_CallOneArg(ptr, ptr)",
    **fast_paths.PYTHON,
}

#: getters: the argument that is the handle, its cell, and (field of the cell, argument) of what is copied
_CLIENT, _DEVICE = handles.ClientCell, handles.DeviceCell
_DESCRIPTION, _MEMORY = handles.DescriptionCell, handles.MemoryCell
_LAYOUT = handles.LayoutCell
_EXECUTABLE, _BUFFER, _TOPOLOGY = handles.ExecutableCell, handles.BufferCell, handles.TopologyCell
_DEVICES = (("devices", "addressable_devices"), ("num_devices", "num_addressable_devices"))
GETTERS: dict[str, tuple[str, type[handles.Cell], tuple[tuple[str, str], ...]]] = {
    "PJRT_Client_PlatformName": ("client", _CLIENT, (("name", "platform_name"), ("name_size", "platform_name_size"))),
    "PJRT_Client_PlatformVersion": (
        *("client", _CLIENT),
        (("version", "platform_version"), ("version_size", "platform_version_size")),
    ),
    "PJRT_Client_ProcessIndex": ("client", _CLIENT, (("process_index", "process_index"),)),
    "PJRT_Client_Devices": ("client", _CLIENT, (("all_devices", "devices"), ("num_all_devices", "num_devices"))),
    "PJRT_Client_AddressableDevices": ("client", _CLIENT, _DEVICES),
    "PJRT_Client_AddressableMemories": (
        *("client", _CLIENT),
        (("memories", "addressable_memories"), ("num_memories", "num_addressable_memories")),
    ),
    "PJRT_Client_TopologyDescription": ("client", _CLIENT, (("topology", "topology"),)),
    "PJRT_DeviceDescription_Id": ("device_description", _DESCRIPTION, (("id", "id"),)),
    "PJRT_DeviceDescription_ProcessIndex": (
        *("device_description", _DESCRIPTION),
        (("process_index", "process_index"),),
    ),
    "PJRT_DeviceDescription_Attributes": (
        *("device_description", _DESCRIPTION),
        (("num_attributes", "num_attributes"), ("attributes", "attributes")),
    ),
    "PJRT_DeviceDescription_Kind": (
        *("device_description", _DESCRIPTION),
        (("kind", "device_kind"), ("kind_size", "device_kind_size")),
    ),
    "PJRT_DeviceDescription_DebugString": (
        *("device_description", _DESCRIPTION),
        (("text", "debug_string"), ("text_size", "debug_string_size")),
    ),
    "PJRT_DeviceDescription_ToString": (
        *("device_description", _DESCRIPTION),
        (("text", "to_string"), ("text_size", "to_string_size")),
    ),
    "PJRT_Device_GetDescription": ("device", _DEVICE, (("description", "device_description"),)),
    "PJRT_Device_IsAddressable": ("device", _DEVICE, (("is_addressable", "is_addressable"),)),
    "PJRT_Device_LocalHardwareId": ("device", _DEVICE, (("local_hardware_id", "local_hardware_id"),)),
    "PJRT_Device_AddressableMemories": (
        *("device", _DEVICE),
        (("memories", "memories"), ("num_memories", "num_memories")),
    ),
    "PJRT_Memory_Id": ("memory", _MEMORY, (("id", "id"),)),
    "PJRT_Memory_Kind": ("memory", _MEMORY, (("kind", "kind"), ("kind_size", "kind_size"))),
    "PJRT_Memory_Kind_Id": ("memory", _MEMORY, (("kind_id", "kind_id"),)),
    "PJRT_Memory_DebugString": ("memory", _MEMORY, (("text", "debug_string"), ("text_size", "debug_string_size"))),
    "PJRT_Memory_ToString": ("memory", _MEMORY, (("text", "to_string"), ("text_size", "to_string_size"))),
    "PJRT_Memory_AddressableByDevices": ("memory", _MEMORY, (("devices", "devices"), ("num_devices", "num_devices"))),
    "PJRT_Executable_Name": (
        *("executable", _EXECUTABLE),
        (("name", "executable_name"), ("name_size", "executable_name_size")),
    ),
    "PJRT_Executable_NumReplicas": ("executable", _EXECUTABLE, (("num_replicas", "num_replicas"),)),
    "PJRT_Executable_NumPartitions": ("executable", _EXECUTABLE, (("num_partitions", "num_partitions"),)),
    "PJRT_Executable_NumOutputs": ("executable", _EXECUTABLE, (("num_outputs", "num_outputs"),)),
    "PJRT_Executable_SizeOfGeneratedCodeInBytes": ("executable", _EXECUTABLE, (("code_size", "size_in_bytes"),)),
    "PJRT_Executable_OutputElementTypes": (
        *("executable", _EXECUTABLE),
        (("output_types", "output_types"), ("num_outputs", "num_output_types")),
    ),
    "PJRT_Executable_OutputDimensions": (
        *("executable", _EXECUTABLE),
        (("num_outputs", "num_outputs"), ("output_dims", "dims"), ("output_dim_sizes", "dim_sizes")),
    ),
    "PJRT_Executable_OutputMemoryKinds": (
        *("executable", _EXECUTABLE),
        (("num_outputs", "num_outputs"), ("output_kinds", "memory_kinds"), ("output_kind_sizes", "memory_kind_sizes")),
    ),
    "PJRT_Executable_ParameterMemoryKinds": (
        *("executable", _EXECUTABLE),
        (
            *(("num_parameters", "num_parameters"), ("parameter_kinds", "memory_kinds")),
            ("parameter_kind_sizes", "memory_kind_sizes"),
        ),
    ),
    "PJRT_LoadedExecutable_AddressableDevices": ("executable", _EXECUTABLE, _DEVICES),
    "PJRT_LoadedExecutable_AddressableDeviceLogicalIds": (
        *("executable", _EXECUTABLE),
        (
            ("logical_ids", "addressable_device_logical_ids"),
            ("num_devices", "num_addressable_device_logical_ids"),
        ),
    ),
    "PJRT_LoadedExecutable_IsDeleted": ("executable", _EXECUTABLE, (("is_deleted", "is_deleted"),)),
    "PJRT_Buffer_ElementType": ("buffer", _BUFFER, (("type", "type"),)),
    "PJRT_Buffer_Dimensions": ("buffer", _BUFFER, (("dims", "dims"), ("num_dims", "num_dims"))),
    "PJRT_Buffer_UnpaddedDimensions": ("buffer", _BUFFER, (("dims", "unpadded_dims"), ("num_dims", "num_dims"))),
    "PJRT_Buffer_DynamicDimensionIndices": (
        *("buffer", _BUFFER),
        (("null", "dynamic_dim_indices"), ("zero", "num_dynamic_dims")),
    ),
    "PJRT_Buffer_OnDeviceSizeInBytes": ("buffer", _BUFFER, (("size", "on_device_size_in_bytes"),)),
    "PJRT_Buffer_Device": ("buffer", _BUFFER, (("device", "device"),)),
    "PJRT_Buffer_Memory": ("buffer", _BUFFER, (("memory", "memory"),)),
    "PJRT_Buffer_IsDeleted": ("buffer", _BUFFER, (("is_deleted", "is_deleted"),)),
    "PJRT_Buffer_IsOnCpu": ("buffer", _BUFFER, (("is_on_cpu", "is_on_cpu"),)),
    "PJRT_Layouts_PJRT_Buffer_MemoryLayout": ("buffer", _BUFFER, (("layout", "layout"),)),
    "PJRT_Layouts_MemoryLayout_Serialize": (
        *("layout", _LAYOUT),
        (
            *(("text", "serialized_bytes"), ("size", "serialized_bytes_size")),
            *(("self", "serialized_layout"), ("deleter", "serialized_layout_deleter")),
        ),
    ),
    "PJRT_TopologyDescription_PlatformName": (
        *("topology", _TOPOLOGY),
        (("name", "platform_name"), ("name_size", "platform_name_size")),
    ),
    "PJRT_TopologyDescription_PlatformVersion": (
        *("topology", _TOPOLOGY),
        (("version", "platform_version"), ("version_size", "platform_version_size")),
    ),
    "PJRT_TopologyDescription_GetDeviceDescriptions": (
        *("topology", _TOPOLOGY),
        (("descriptions", "descriptions"), ("num_descriptions", "num_descriptions")),
    ),
    "PJRT_TopologyDescription_Attributes": (
        *("topology", _TOPOLOGY),
        (("attributes", "attributes"), ("num_attributes", "num_attributes")),
    ),
    "PJRT_TopologyDescription_Fingerprint": ("topology", _TOPOLOGY, (("fingerprint", "fingerprint"),)),
}


@once
def code() -> dict[str, int]:
    """Addresses of the native functions by name; they live as long as the process."""
    from heron.codegen.llvm.jit import Jit

    python = ctypes.pythonapi
    symbols = {name: ctypes.cast(getattr(python, name), ctypes.c_void_p).value or 0 for name in _PYTHON}
    is_ending = getattr(python, "Py_IsFinalizing", None) or python._Py_IsFinalizing
    symbols["heron_is_ending"] = ctypes.cast(is_ending, ctypes.c_void_p).value or 0
    symbols["heron_interrupt"] = id(KeyboardInterrupt)
    symbols[fast_paths.EMPTY] = numpy_api.function(numpy_api.EMPTY) or 0
    symbols["pthread_self"] = ctypes.cast(ctypes.CDLL(None).pthread_self, ctypes.c_void_p).value or 0
    jit = Jit(level=1, symbols=symbols)
    linked = jit.add(_text(), "pjrt")
    for lasting in (jit, linked):
        python.Py_IncRef(ctypes.py_object(lasting))
    return dict(linked.addresses)


def entry(name: str) -> int:
    """Address of the native function of that slot."""
    return code()[name]


def bind(functions: dict[str, Callable[[int], int]], names: Iterable[str]) -> None:
    """Say which Python function is behind each entry point; they live as long as the process."""
    table = (ctypes.c_void_p * len(functions)).from_address(_table())
    for n, name in enumerate(names):
        function = functions[name]
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(function))
        table[n] = id(function)


def _table() -> int:
    get = ctypes.CFUNCTYPE(ctypes.c_void_p)(code()["heron_functions"])
    return get() or 0


def slots() -> tuple[str, ...]:
    """Slots Python functions are behind, in their order in the native table."""
    return tuple(n for n in (*abi.functions(), *abi.LAYOUT_FUNCTIONS) if n not in GETTERS and n not in NATIVE)


# -- text --------------------------------------------------------------------------------------------------------------


def _text() -> str:
    names = slots()
    parts = [declared(*_PYTHON.values(), "i32 @heron_is_ending()", "i64 @pthread_self()", "void @free(ptr)")]
    parts += ["@heron_interrupt = external global i8"]
    parts += [f"@functions = internal global [{len(names)} x ptr] zeroinitializer", _COMMON]
    parts += [_entry_point(name, n) for n, name in enumerate(names)]
    parts += [_getter(name, *facts) for name, facts in GETTERS.items()]
    return "\n".join([*parts, _ERRORS, _USER_DATA, _BUFFERS, fast_paths.text()])


#: what slots of events do for one that is done (its state is odd), without Python; its handle is the first argument
_DONE = {
    "PJRT_Event_IsReady": """  %to = getelementptr i8, ptr %args, i64 24
  store i8 1, ptr %to""",
    "PJRT_Event_Error": "",
    "PJRT_Event_Await": "",
    "PJRT_Event_OnReady": """  %callback.at = getelementptr i8, ptr %args, i64 24
  %callback = load ptr, ptr %callback.at
  %user.at = getelementptr i8, ptr %args, i64 32
  %user = load ptr, ptr %user.at
  call void %callback(ptr null, ptr %user)""",
}
#: the state of the event that is done and never destroyed, whose handle programs that are over give
ALWAYS_DONE = 3


def _entry_point(name: str, n: int) -> str:
    return f"""define ptr @{name}(ptr %args) {{
  %function = load ptr, ptr getelementptr ([1 x ptr], ptr @functions, i64 0, i64 {n})
{_shortcut(name)}
  %error = call ptr @heron_call(ptr %function, ptr %args)
  ret ptr %error
}}"""


#: slots that give the address of a buffer's elements
_POINTERS = {
    "PJRT_Buffer_OpaqueDeviceMemoryDataPointer": "device_memory_ptr",
    "PJRT_Buffer_UnsafePointer": "buffer_pointer",
}


def _shortcut(name: str) -> str:
    """The way round Python: for an event that is done, and for the address of an array that is there."""
    if name in _POINTERS:
        return _pointer(name, _POINTERS[name])
    if name not in _DONE and name != "PJRT_Event_Destroy":
        return fast_paths.shortcut(name)
    wanted = f"icmp eq i64 %state, {ALWAYS_DONE}" if name == "PJRT_Event_Destroy" else "trunc i64 %state to i1"
    return f"""  %event.at = getelementptr i8, ptr %args, i64 16
  %event = load ptr, ptr %event.at
  %state = load atomic i64, ptr %event acquire, align 8
  %short = {wanted}
  br i1 %short, label %done, label %python
done:
{_DONE.get(name, "")}
  ret ptr null
python:
"""


def _pointer(name: str, field: str) -> str:
    """The address of the elements of a buffer's array, unless it was deleted: NumPy's own field of it."""
    if not numpy_api.known_layout():
        return ""
    args: Any = abi.struct(f"{name}_Args")
    cell: Any = handles.BufferCell
    return f"""
{load("buffer", "ptr", "args", args.buffer.offset)}
{load("array", "ptr", "buffer", cell.array.offset)}
{load("deleted", "i8", "buffer", cell.is_deleted.offset)}
  %is.there = icmp ne ptr %array, null
  %is.kept = icmp eq i8 %deleted, 0
  %short = and i1 %is.there, %is.kept
  br i1 %short, label %known, label %python
known:
{load("data", "ptr", "array", numpy_api.Array.data.offset)}
{store("%data", "ptr", "args", getattr(args, field).offset)}
  ret ptr null
python:
"""


def _getter(name: str, owner: str, cell: type[handles.Cell], fields: tuple[tuple[str, str], ...]) -> str:
    args = abi.struct(f"{name}_Args")
    lines = [f"define ptr @{name}(ptr %args) {{", load("handle", "ptr", "args", getattr(args, owner).offset)]
    for n, (source, target) in enumerate(fields):
        size = getattr(cell, source).size
        assert size == getattr(args, target).size, (name, source, target)
        lines.append(load(f"value{n}", f"i{8 * size}", "handle", getattr(cell, source).offset))
        lines.append(store(f"%value{n}", f"i{8 * size}", "args", getattr(args, target).offset))
    return "\n".join([*lines, "  ret ptr null", "}"])


_COMMON = """
; the only thread that may still come in, once Python begins to end; and how many threads are inside
@heron_last = global i64 0
@heron_inside = global i64 0

define ptr @heron_functions() {
  ret ptr @functions
}

define ptr @heron_ending() {
  ret ptr @heron_last
}

define ptr @heron_counting() {
  ret ptr @heron_inside
}

; take Python's lock and put a pending exception aside: the lock's state, or -1 when Python is going
define internal i32 @heron_enter(ptr %saved) noinline {
entry:
  %self = call i64 @pthread_self()
  %before = atomicrmw add ptr @heron_inside, i64 1 seq_cst
  %last = load atomic i64, ptr @heron_last seq_cst, align 8
  %usual = icmp eq i64 %last, 0
  %mine = icmp eq i64 %last, %self
  %may = or i1 %usual, %mine
  %ending = call i32 @heron_is_ending()
  %alive = icmp eq i32 %ending, 0
  %on = and i1 %may, %alive
  br i1 %on, label %take, label %nothing
take:
  %lock = call i32 @PyGILState_Ensure()
  %value = getelementptr i8, ptr %saved, i64 8
  %trace = getelementptr i8, ptr %saved, i64 16
  call void @PyErr_Fetch(ptr %saved, ptr %value, ptr %trace)
  ret i32 %lock
nothing:
  %out = atomicrmw sub ptr @heron_inside, i64 1 seq_cst
  ret i32 -1
}

define internal void @heron_leave(i32 %lock, ptr %saved) noinline {
  %value = getelementptr i8, ptr %saved, i64 8
  %trace = getelementptr i8, ptr %saved, i64 16
  %t = load ptr, ptr %saved
  %v = load ptr, ptr %value
  %b = load ptr, ptr %trace
  call void @PyErr_Restore(ptr %t, ptr %v, ptr %b)
  call void @PyGILState_Release(i32 %lock)
  %after = atomicrmw sub ptr @heron_inside, i64 1 seq_cst
  ret void
}

; what a slot's Python function gives; the caller has the lock
define internal ptr @heron_ask(ptr %function, ptr %args) noinline {
entry:
  br label %ask
ask:
  %again = phi i1 [ false, %entry ], [ %first, %clear ]
  %number = call ptr @PyLong_FromVoidPtr(ptr %args)
  %result = call ptr @PyObject_CallOneArg(ptr %function, ptr %number)
  call void @Py_DecRef(ptr %number)
  %raised = icmp eq ptr %result, null
  br i1 %raised, label %clear, label %read
clear: ; only Ctrl-C can come before the function's own `try`: nothing was done yet
  %matches = call i32 @PyErr_ExceptionMatches(ptr @heron_interrupt)
  call void @PyErr_Clear()
  %is.interrupt = icmp ne i32 %matches, 0
  %not.again = xor i1 %again, true
  %first = and i1 %is.interrupt, %not.again
  br i1 %first, label %ask, label %done
read: ; the address of an error, less than 0 where it was Ctrl-C
  %answer = call ptr @PyLong_AsVoidPtr(ptr %result)
  call void @Py_DecRef(ptr %result)
  %bits = ptrtoint ptr %answer to i64
  %stopped = icmp slt i64 %bits, 0
  %minus = sub i64 0, %bits
  %positive = select i1 %stopped, i64 %minus, i64 %bits
  %address = inttoptr i64 %positive to ptr
  %interrupted = or i1 %again, %stopped
  br label %done
done:
  %error = phi ptr [ null, %clear ], [ %address, %read ]
  %tell = phi i1 [ %again, %clear ], [ %interrupted, %read ]
  br i1 %tell, label %interrupt, label %out
interrupt:
  call void @PyErr_SetInterrupt()
  br label %out
out:
  ret ptr %error
}

define internal ptr @heron_call(ptr %function, ptr %args) noinline {
  %saved = alloca [3 x ptr]
  %lock = call i32 @heron_enter(ptr %saved)
  %ending = icmp slt i32 %lock, 0
  br i1 %ending, label %nothing, label %ask
ask:
  %error = call ptr @heron_ask(ptr %function, ptr %args)
  call void @heron_leave(i32 %lock, ptr %saved)
  ret ptr %error
nothing:
  ret ptr null
}
"""

# an error: its table, i32 code, address and size of its message, then the message; made by `errors.py` with malloc
_ERRORS = """
define void @heron_error_destroy(ptr %error) {
  call void @free(ptr %error)
  ret void
}

define void @heron_error_message(ptr %error, ptr %text, ptr %size) {
  %text.at = getelementptr i8, ptr %error, i64 16
  %address = load ptr, ptr %text.at
  store ptr %address, ptr %text
  %size.at = getelementptr i8, ptr %error, i64 24
  %bytes = load i64, ptr %size.at
  store i64 %bytes, ptr %size
  ret void
}

define i32 @heron_error_code(ptr %error) {
  %code.at = getelementptr i8, ptr %error, i64 8
  %code = load i32, ptr %code.at
  ret i32 %code
}

define void @heron_error_payloads(ptr %error, ptr %visitor, ptr %user) {
  ret void
}

define void @PJRT_Error_Destroy(ptr %args) {
  %at = getelementptr i8, ptr %args, i64 16
  %error = load ptr, ptr %at
  call void @free(ptr %error)
  ret void
}

define void @PJRT_Error_Message(ptr %args) {
  %at = getelementptr i8, ptr %args, i64 16
  %error = load ptr, ptr %at
  %text = getelementptr i8, ptr %args, i64 24
  %size = getelementptr i8, ptr %args, i64 32
  call void @heron_error_message(ptr %error, ptr %text, ptr %size)
  ret void
}

define ptr @PJRT_Error_GetCode(ptr %args) {
  %at = getelementptr i8, ptr %args, i64 16
  %error = load ptr, ptr %at
  %code = call i32 @heron_error_code(ptr %error)
  %to = getelementptr i8, ptr %args, i64 24
  store i32 %code, ptr %to
  ret ptr null
}

define ptr @PJRT_Error_ForEachPayload(ptr %args) {
  ret ptr null
}
"""

# notes of frameworks in a memory: key, value and destructor, USER_DATA of them after the table
_USER_DATA = f"""
define ptr @heron_memory_get(ptr %memory, ptr %key) {{
entry:
  br label %look
look:
  %n = phi i64 [ 0, %entry ], [ %next, %other ]
  %at = getelementptr [3 x ptr], ptr %memory, i64 %n
  %key.at = getelementptr i8, ptr %at, i64 8
  %found = load ptr, ptr %key.at
  %same = icmp eq ptr %found, %key
  br i1 %same, label %here, label %other
other:
  %next = add i64 %n, 1
  %end = icmp eq i64 %next, {handles.USER_DATA}
  br i1 %end, label %none, label %look
here:
  %value.at = getelementptr i8, ptr %at, i64 16
  %value = load ptr, ptr %value.at
  ret ptr %value
none:
  ret ptr null
}}

define void @heron_memory_set(ptr %memory, ptr %key, ptr %value, ptr %destroy) {{
entry:
  br label %look
look:
  %n = phi i64 [ 0, %entry ], [ %next, %other ]
  %at = getelementptr [3 x ptr], ptr %memory, i64 %n
  %key.at = getelementptr i8, ptr %at, i64 8
  %found = load ptr, ptr %key.at
  %same = icmp eq ptr %found, %key
  %free = icmp eq ptr %found, null
  %fits = or i1 %same, %free
  br i1 %fits, label %here, label %other
other:
  %next = add i64 %n, 1
  %end = icmp eq i64 %next, {handles.USER_DATA}
  br i1 %end, label %none, label %look
here:
  %value.at = getelementptr i8, ptr %at, i64 16
  %destroy.at = getelementptr i8, ptr %at, i64 24
  %old = load ptr, ptr %value.at
  %old.destroy = load ptr, ptr %destroy.at
  store ptr %value, ptr %value.at
  store ptr %destroy, ptr %destroy.at
  store ptr %key, ptr %key.at
  %owned = icmp ne ptr %old.destroy, null
  br i1 %owned, label %drop, label %none
drop:
  call void %old.destroy(ptr %old)
  br label %none
none:
  ret void
}}
"""

#: slots native code answers alone, beside the getters
NATIVE = (
    *("PJRT_Error_Destroy", "PJRT_Error_Message", "PJRT_Error_GetCode", "PJRT_Error_ForEachPayload"),
    *("PJRT_Buffer_IncreaseExternalReferenceCount", "PJRT_Buffer_DecreaseExternalReferenceCount"),
    "PJRT_Layouts_MemoryLayout_Destroy",
)


def _counting(name: str, step: int) -> str:
    """A slot that counts who refers to a buffer's memory."""
    return f"""define ptr @{name}(ptr %args) {{
  %at = getelementptr i8, ptr %args, i64 16
  %buffer = load ptr, ptr %at
  %count = getelementptr i8, ptr %buffer, i64 {handles.BufferCell.external.offset}
  %old = atomicrmw add ptr %count, i64 {step} acq_rel
  ret ptr null
}}"""


_BUFFERS = f"""
{_counting("PJRT_Buffer_IncreaseExternalReferenceCount", 1)}
{_counting("PJRT_Buffer_DecreaseExternalReferenceCount", -1)}
define ptr @PJRT_Layouts_MemoryLayout_Destroy(ptr %args) {{
  ret ptr null
}}
define void @heron_nothing(ptr %thing) {{
  ret void
}}
"""


def call_c(result: Any, address: int, *args: tuple[Any, Any]) -> Any:
    """Call C code at an address with (ctypes kind, value) pairs, without Python's lock."""
    return ctypes.CFUNCTYPE(result, *[k for k, _ in args])(address)(*[v for _, v in args])
