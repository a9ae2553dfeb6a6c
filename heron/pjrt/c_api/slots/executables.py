"""Compiling and running across the C interface."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from heron.errors import HeronError
from heron.pjrt import element_types, float_environment
from heron.pjrt.c_api import abi, handles
from heron.pjrt.c_api.handles import ExecutableCell, Handle
from heron.pjrt.c_api.slot import FREE, give_bytes, named_values, slot
from heron.pjrt.c_api.slots.buffers import give as give_buffer
from heron.pjrt.c_api.slots.events import give as give_event
from heron.pjrt.c_api.slots.quick import have_cells, plan
from heron.pjrt.client import Client
from heron.pjrt.compile_options import CompileOptions
from heron.pjrt.loaded import ExecuteOptions, LoadedExecutable

_T = TypeVar("_T")
_I64, _PTR = ctypes.c_int64, ctypes.c_uint64
#: programs come on threads of C++ with small stacks
_STACK_BYTES = 64 << 20


def give(executable: LoadedExecutable) -> int:
    """A handle of an executable, which the caller destroys."""
    name, name_at, name_size = handles.text(executable.name)
    kind, kind_at, kind_size = handles.text("device")
    of_outputs = [handles.text(m.kind) for m in executable.output_memories(executable.client.devices[0])]
    outputs, count = executable.outputs, len(executable.outputs)
    types, types_at = handles.array(ctypes.c_int32, [element_types.number(s.element_type) for s in outputs])
    dims, dims_at = handles.array(_I64, [d for s in outputs for d in s.dims])
    ranks, ranks_at = handles.array(_PTR, [s.rank for s in outputs])
    many = len(executable.parameters)
    kinds, kinds_at = handles.pointers([kind_at] * many)
    kind_sizes, kind_sizes_at = handles.array(_PTR, [kind_size] * many)
    out_kinds, out_kinds_at = handles.pointers([at for _, at, _ in of_outputs])
    out_sizes, out_sizes_at = handles.array(_PTR, [size for *_, size in of_outputs])
    devices, devices_at = handles.pointers(d.handle for d in executable.devices)
    partitions = executable.num_partitions
    logical, logical_at = handles.array(
        ctypes.c_int32, [n for place in executable.places for n in divmod(place, partitions)]
    )
    cell = ExecutableCell(
        *(name_at, name_size, executable.num_replicas, partitions, count, 0, 0),
        *(types_at, dims_at, ranks_at, out_kinds_at, out_sizes_at),
        *(len(executable.parameters), kinds_at, kind_sizes_at, devices_at, len(executable.devices), logical_at),
    )
    keep = (name, kind, types, dims, ranks, kinds, kind_sizes, out_kinds, out_sizes, of_outputs, devices, logical)
    return handles.new(executable, cell, *keep).address


def on_large_stack(work: Callable[[], _T]) -> _T:
    """Run `work` in a thread with a stack for deep programs; return or raise what it does."""
    outcome: list[Any] = []

    def run() -> None:
        float_environment.reset()
        try:
            outcome.append((work(), None))
        except BaseException as error:
            outcome.append((None, error))

    with _STACK_SIZE:
        usual = threading.stack_size(_STACK_BYTES)
        try:
            thread = threading.Thread(target=run, name="heron-compile")
            thread.start()
        finally:
            threading.stack_size(usual)
    thread.join()
    result, error = outcome[0]
    if error is not None:
        raise error
    return result


_STACK_SIZE = threading.Lock()


@slot("PJRT_Client_Compile")
def compile_program(args: Any) -> None:
    args.executable = _compiled(handles.get(args.client), args)


@slot("PJRT_Compile")
def compile_for_topology(args: Any) -> None:
    """Without a client: one of the topology's is made, on which the program may be loaded later or not at all."""
    topology = handles.get(args.topology)
    client = (
        handles.get(args.client)
        if args.client
        else Client(topology.target, topology.count, platform_name=topology.platform)
    )
    args.executable = _compiled(client, args)


def _compiled(client: Client, args: Any) -> int:
    program: Any = abi.struct("PJRT_Program").from_address(args.program)
    code = handles.read_text(program.code, program.code_size)
    options = CompileOptions.parse(handles.read_text(args.compile_options, args.compile_options_size))
    return give(on_large_stack(lambda: client.compile(code, options)))


@slot("PJRT_Client_Load")
def load(args: Any) -> None:
    client, handle = handles.get(args.client), handles.handle(args.executable)
    executable: LoadedExecutable = handle.object
    if executable.client is not client:
        args.loaded_executable = give(on_large_stack(lambda: client.deserialize(executable.serialize())))
        return
    handle.references += 1
    args.loaded_executable = args.executable


@slot("PJRT_Executable_DeserializeAndLoad")
def deserialize(args: Any) -> None:
    client: Client = handles.get(args.client)
    data = handles.read_text(args.serialized_executable, args.serialized_executable_size)
    size = args.overridden_serialized_compile_options_size
    changed = handles.read_text(args.overridden_serialized_compile_options, size)
    options = CompileOptions.parse(changed) if changed else None
    args.loaded_executable = give(on_large_stack(lambda: client.deserialize(data, options)))


@slot("PJRT_LoadedExecutable_GetExecutable")
def get_executable(args: Any) -> None:
    handles.handle(args.loaded_executable).references += 1
    args.executable = args.loaded_executable


@slot("PJRT_Executable_Destroy")
def destroy(args: Any) -> None:
    handles.free(args.executable)


@slot("PJRT_LoadedExecutable_Destroy")
def destroy_loaded(args: Any) -> None:
    handles.free(args.executable)


@slot("PJRT_LoadedExecutable_Delete")
def delete(args: Any) -> None:
    handle = handles.handle(args.executable)
    handle.object.delete()
    handle.cell.is_deleted, handle.cell.plan = 1, 0


# -- questions ---------------------------------------------------------------------------------------------------------


def _give_bytes(args: Any, data: bytes, owner: str) -> None:
    args.serialized_bytes = give_bytes(data)
    args.serialized_bytes_size = len(data)
    setattr(args, owner, args.serialized_bytes)
    setattr(args, f"{owner}_deleter", FREE)


@slot("PJRT_LoadedExecutable_GetDeviceAssignment")
def device_assignment(args: Any) -> None:
    options = handles.get(args.executable).compile_options
    _give_bytes(args, options.assignment_bytes(), "serialized_device_assignment")


@slot("PJRT_Executable_Serialize")
def serialize(args: Any) -> None:
    _give_bytes(args, handles.get(args.executable).serialize(), "serialized_executable")


@slot("PJRT_Executable_GetCompileOptions")
def compile_options(args: Any) -> None:
    _give_bytes(args, handles.get(args.executable).compile_options.serialize(), "serialized_compile_options")


def _kept(handle: Handle, name: str, make: Callable[[], Any]) -> Any:
    """The result of `make`, computed once for a handle and kept with it."""
    for entry in handle.keep:
        if isinstance(entry, tuple) and entry[0] == name:
            return entry[1]
    made = make()
    handle.keep = (*handle.keep, (name, made))
    return made


def _fingerprint(args: Any) -> None:
    handle = handles.handle(args.executable)
    _, address, size = _kept(handle, "fingerprint", lambda: handles.text(handle.object.fingerprint))
    args.executable_fingerprint, args.executable_fingerprint_size = address, size


slot("PJRT_Executable_Fingerprint")(_fingerprint)
slot("PJRT_LoadedExecutable_Fingerprint")(_fingerprint)


@slot("PJRT_Executable_GetCostAnalysis")
def cost_analysis(args: Any) -> None:
    handle = handles.handle(args.executable)
    _, address, count = _kept(handle, "cost", lambda: named_values(handle.object.cost_analysis()))
    args.properties, args.num_properties = address, count


@slot("PJRT_Executable_GetCompiledMemoryStats")
def memory_stats(args: Any) -> None:
    memory = handles.get(args.executable).program.memory
    for name, _ in args._fields_:
        if name.endswith(("_in_bytes", "_bytes", "_allocations")):
            setattr(args, name, 0)
    args.argument_size_in_bytes, args.output_size_in_bytes = memory.arguments, memory.outputs
    args.alias_size_in_bytes, args.temp_size_in_bytes = memory.aliased, memory.temp
    args.peak_memory_in_bytes = memory.peak
    args.total_size_in_bytes = args.total_allocation_bytes = memory.peak


@slot("PJRT_Executable_OptimizedProgram")
def optimized_program(args: Any) -> None:
    handle = handles.handle(args.executable)
    program: Any = abi.struct("PJRT_Program").from_address(args.program)
    data = _kept(handle, "program", handle.object.optimized_program)
    _, program.format, program.format_size = _HLO
    if program.code:
        ctypes.memmove(program.code, data, len(data))
    program.code_size = len(data)


_HLO = handles.text("hlo_with_config")


# -- running -----------------------------------------------------------------------------------------------------------


@slot("PJRT_ExecuteContext_Create")
def create_context(args: Any) -> None:
    args.context = handles.new(object(), handles.EventCell(0)).address


@slot("PJRT_ExecuteContext_Destroy")
def destroy_context(args: Any) -> None:
    handles.free(args.context)


@slot("PJRT_LoadedExecutable_Execute")
def execute(args: Any) -> None:
    handle = handles.handle(args.executable)
    executable: LoadedExecutable = handle.object
    rows, columns = args.num_devices, args.num_args
    lists = (_PTR * rows).from_address(args.argument_lists) if rows else ()
    given = [[handles.handle(a) for a in ((_PTR * columns).from_address(at) if columns else ())] for at in lists]
    device = handles.get(args.execute_device) if args.execute_device else None
    outputs, events = executable.execute_sharded(
        [[h.object for h in row] for row in given], _options(args.options), device
    )
    for row in given:
        for h in row:
            if h.object.deleted:
                h.cell.is_deleted = 1
    if executable.about.calls_python:  # as JAX's CPU does it, whose calls of such programs have no faster way
        for error in [e.error for e in events if e.is_ready and e.error is not None]:
            raise error
    _write(args, outputs, events)
    if executable.runs_at_once:
        have_cells(len(executable.devices) * len(executable.outputs))
        if not handle.cell.plan:
            _give_plan(handle)


def _give_plan(handle: Handle) -> None:
    """From now on native code runs the program."""
    found = plan(handle.object)
    if found is not None:
        handle.keep = (*handle.keep, found)
        handle.cell.plan = ctypes.addressof(found)


def _options(address: int) -> ExecuteOptions:
    options: Any = abi.struct("PJRT_ExecuteOptions").from_address(address)
    if options.num_send_ops or options.num_recv_ops:
        raise HeronError("PJRT018", "programs that send to the host and receive from it are not supported")
    indices = options.non_donatable_input_indices, options.num_non_donatable_input_indices
    return ExecuteOptions(frozenset(handles.read_integers(_I64, *indices)))


def _write(args: Any, outputs: Any, events: Any) -> None:
    lists = (_PTR * len(outputs)).from_address(args.output_lists) if outputs else ()
    for at, row in zip(lists, outputs, strict=True):
        if row:
            (_PTR * len(row)).from_address(at)[:] = [give_buffer(b) for b in row]
    if args.device_complete_events:
        (_PTR * len(events)).from_address(args.device_complete_events)[:] = [give_event(e) for e in events]
