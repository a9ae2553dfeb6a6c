"""Slots that only copy fields from a handle's cell (`handles.py`) to the arguments, with no Python."""

from __future__ import annotations

from heron.codegen.llvm.text import Module
from heron.pjrt.c_api import abi, handles

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
        (("printed", "to_string"), ("printed_size", "to_string_size")),
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


def write(module: Module) -> None:
    """The functions of all getters."""
    for name, (owner, cell, fields) in GETTERS.items():
        arguments = abi.struct(f"{name}_Args")
        with module.function(f"ptr @{name}(ptr %args)") as f:
            args = f.view(f.arguments[0], arguments)
            handle = f.view(args.pointer(owner), cell)
            for source, target in fields:
                assert getattr(cell, source).size == getattr(arguments, target).size, (name, source, target)
                args[target] = handle[source]
            f.ret("null", "ptr")
