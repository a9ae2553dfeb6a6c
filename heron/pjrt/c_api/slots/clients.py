"""Client, devices and memories across the C interface."""

from __future__ import annotations

import atexit
import ctypes
import os
from typing import Any

from heron.once import once
from heron.pjrt.c_api import abi, ending, handles, native
from heron.pjrt.c_api.handles import ClientCell, DeviceCell, MemoryCell
from heron.pjrt.c_api.slot import FREE, give_bytes, named_values, read_named_values, slot
from heron.pjrt.c_api.slots.processes import meet
from heron.pjrt.c_api.slots.topologies import asked, describe
from heron.pjrt.c_api.slots.topologies import give as give_topology
from heron.pjrt.client import Client
from heron.pjrt.device import Device, FarDevice, Memory
from heron.pjrt.job import Job


def place(args: Any) -> Memory:
    """The memory that `args.memory` or `args.device` names."""
    if args.memory:
        return handles.get(args.memory)
    return handles.get(args.device).default_memory


@slot("PJRT_Plugin_Initialize")
def initialize(args: Any) -> None:
    del args  # there is nothing to do before a client is made


@slot("PJRT_Plugin_Attributes")
def attributes(args: Any) -> None:
    _, args.attributes, args.num_attributes = _attributes()


@once
def _attributes() -> tuple[Any, int, int]:
    return named_values({"xla_version": 2, **_stablehlo_versions()})


def _stablehlo_versions() -> dict[str, tuple[int, ...]]:
    """Programs come as artifacts of this version: the one of the library that will read them."""
    try:
        from jaxlib.mlir.dialects import stablehlo
    except ImportError:
        return {"stablehlo_current_version": (1, 0, 0), "stablehlo_minimum_version": (1, 0, 0)}
    current = tuple(int(n) for n in stablehlo.get_current_version().split("."))
    minimum = tuple(int(n) for n in stablehlo.get_minimum_version().split("."))
    return {"stablehlo_current_version": current, "stablehlo_minimum_version": minimum}


@slot("PJRT_Client_Create")
def create(args: Any) -> None:
    options = read_named_values(args.create_options, args.num_options)
    target, count, platform = asked(options)
    index, processes = options.get("node_id", 0), options.get("num_nodes", 1)
    job = meet(args, index, processes, count) if processes > 1 else Job()
    client = Client(target, count, job=job, process_index=index, platform_name=platform)
    ending.watch()
    atexit.register(client.close)
    args.client = _give(client).address


def _give(client: Client) -> handles.Handle:
    topology = client.topology
    descriptions = describe(topology)
    own = {d.id: d for d in client.devices}
    everywhere = [
        _give_device(own[n], about.address) if n in own else _give_far_device(FarDevice(client, n), about.address)
        for n, about in zip(topology.device_ids, descriptions, strict=True)
    ]
    devices = [d.handle for d in client.devices]
    all_array, all_at = handles.pointers(everywhere)
    memories = [m.handle for m in client.memories]
    name, name_at, name_size = handles.text(client.platform_name)
    version, version_at, version_size = handles.text(client.platform_version)
    devices_array, devices_at = handles.pointers(devices)
    memories_array, memories_at = handles.pointers(memories)
    about = give_topology(topology, client.platform_version, descriptions)
    cell = ClientCell(
        *(name_at, name_size, version_at, version_size, client.process_index),
        *(devices_at, len(devices), memories_at, len(memories), about.address, all_at, len(everywhere)),
    )
    return handles.new(client, cell, name, version, devices_array, memories_array, all_array, everywhere)


def _give_far_device(device: FarDevice, description: int) -> int:
    return handles.new(device, DeviceCell(description, 0, -1)).address


def _give_device(device: Device, description: int) -> int:
    memories, memories_at = handles.pointers([0] * len(device.memories))
    cell = DeviceCell(description, 1, device.local_hardware_id, memories_at, len(memories))
    handle = handles.new(device, cell, memories)
    device.handle = handle.address
    for n, memory in enumerate(device.memories):
        memories[n] = memory.handle = _give_memory(memory, handle.address)
    cell.default_memory = device.default_memory.handle
    return handle.address


def _give_memory(memory: Memory, device: int) -> int:
    kind, kind_at, kind_size = handles.text(memory.kind)
    text, text_at, text_size = handles.text(repr(memory))
    devices, devices_at = handles.pointers([device])
    cell = MemoryCell()
    cell.vtable = ctypes.addressof(_memory_table())
    cell.id, cell.kind_id = memory.id, memory.kind_id
    cell.kind, cell.kind_size, cell.text, cell.text_size = kind_at, kind_size, text_at, text_size
    cell.devices, cell.num_devices = devices_at, 1
    if memory.gpu is None:
        cell.counters = ctypes.addressof(memory.device.memory_stats.counters)
    return handles.new(memory, cell, kind, text, devices, memory.device.memory_stats).address


@once
def _memory_table() -> Any:
    table = abi.struct("PJRT_Memory_FunctionTable")()
    table.struct_size = ctypes.sizeof(table)
    table.instance_struct_size = ctypes.sizeof(MemoryCell)
    table.get_user_data, table.set_user_data = native.entry("heron_memory_get"), native.entry("heron_memory_set")
    return table


@slot("PJRT_Client_Destroy")
def destroy(args: Any) -> None:
    handle = handles.free(args.client)
    if handle is not None:
        handle.object.close()
        atexit.unregister(handle.object.close)


@slot("PJRT_Client_LookupDevice")
def lookup(args: Any) -> None:
    handle = handles.handle(args.client)
    everywhere = handle.keep[-1]
    if not 0 <= args.id < len(everywhere):
        handle.object.device(args.id)
    args.device = everywhere[args.id]


@slot("PJRT_Client_LookupAddressableDevice")
def lookup_addressable(args: Any) -> None:
    client: Client = handles.get(args.client)
    args.addressable_device = client.device(client.first + args.local_hardware_id).handle


@slot("PJRT_Device_DefaultMemory")
def default_memory(args: Any) -> None:
    args.memory = handles.get(args.device).default_memory.handle


@slot("PJRT_Client_DefaultDeviceAssignment")
def default_assignment(args: Any) -> None:
    client: Client = handles.get(args.client)
    count = args.num_replicas * args.num_partitions
    first = client.first if count <= len(client.devices) else 0
    if count > client.topology.count:
        client.device(count - 1)
    assignment = (ctypes.c_int32 * min(count, args.default_assignment_size)).from_address(args.default_assignment)
    assignment[:] = range(first, first + len(assignment))


@slot("PJRT_Client_UpdateGlobalProcessInfo")
def update_processes(args: Any) -> None:
    del args  # who is there is heard at each launch


@slot("PJRT_Client_DmaMap")
def dma_map(args: Any) -> None:
    del args  # every address of this process is one the devices can read


@slot("PJRT_Client_DmaUnmap")
def dma_unmap(args: Any) -> None:
    del args


@slot("PJRT_Device_MemoryStats")
def memory_stats(args: Any) -> None:
    device = handles.get(args.device)
    stats = device.memory_stats
    for field in ("peak_bytes_in_use", "num_allocs", "largest_alloc_size"):
        setattr(args, field, getattr(stats, field))
        setattr(args, f"{field}_is_set", True)
    args.bytes_in_use = stats.bytes_in_use
    host = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    args.bytes_limit = host if device.gpu is None else device.client.target.memory_bytes
    args.bytes_limit_is_set = True
    unknown = ("bytes_reserved", "peak_bytes_reserved", "bytes_reservable_limit")
    for field in (*unknown, "largest_free_block_bytes", "pool_bytes", "peak_pool_bytes"):
        setattr(args, f"{field}_is_set", False)


@slot("PJRT_Device_ClearMemoryStats")
def clear_memory_stats(args: Any) -> None:
    handles.get(args.device).memory_stats.clear()


@slot("PJRT_Device_PoisonExecution")
def poison(args: Any) -> None:
    args.poisoned = False  # a run that was started goes on to its end


@slot("PJRT_Device_GetAttributes")
def device_attributes(args: Any) -> None:
    handle = handles.handle(args.device)
    keep, args.attributes, args.num_attributes = named_values(handle.object.attributes)
    handle.keep = (*handle.keep[:1], keep)
    args.device_attributes, args.attributes_deleter = give_bytes(b""), FREE


@slot("PJRT_Device_CreateAsyncTrackingEvent")
def tracking_event(args: Any) -> None:
    args.event = give_bytes(b"")


@slot("PJRT_AsyncTrackingEvent_Destroy")
def destroy_tracking_event(args: Any) -> None:
    native.call_c(None, FREE, (ctypes.c_void_p, args.event))
