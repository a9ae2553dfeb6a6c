"""libcuda for ctypes: the driver functions that heron calls with their arguments, the structures, the constants.

Source: cuda.h of CUDA 12.0 to 13; names ending in ``_v2`` are those the header's macros stand for. Handles and pointers
are all ``c_void_p``, device addresses 64-bit integers. `library` gives the driver, `use` another one in its place.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from ctypes import Structure, c_char_p, c_float, c_int, c_longlong, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
from typing import Any

from heron.once import once

# pointer or handle, int, unsigned, size, device address
P, INT, U, N, A = c_void_p, c_int, c_uint, c_size_t, c_uint64

#: arguments of each function; each returns a CUresult, 0 for success
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "cuInit": (U,),
    "cuDriverGetVersion": (P,),
    "cuGetErrorName": (INT, P),
    "cuDeviceGetCount": (P,),
    "cuDeviceGet": (P, INT),
    "cuDeviceGetName": (P, INT, INT),
    "cuDeviceGetAttribute": (P, INT, INT),
    "cuDeviceTotalMem_v2": (P, INT),
    "cuDeviceGetUuid_v2": (P, INT),
    "cuDevicePrimaryCtxRetain": (P, INT),
    "cuDevicePrimaryCtxReset_v2": (INT,),
    "cuCtxSetCurrent": (P,),
    "cuCtxSynchronize": (),
    "cuStreamCreate": (P, U),
    "cuStreamSynchronize": (P,),
    "cuStreamWaitEvent": (P, P, U),
    "cuStreamBeginCapture_v2": (P, INT),
    "cuStreamEndCapture": (P, P),
    "cuEventCreate": (P, U),
    "cuEventRecord": (P, P),
    "cuEventSynchronize": (P,),
    "cuEventQuery": (P,),
    "cuEventElapsedTime": (P, P, P),
    "cuEventDestroy_v2": (P,),
    "cuModuleLoadDataEx": (P, P, U, P, P),
    "cuModuleUnload": (P,),
    "cuModuleGetFunction": (P, P, c_char_p),
    "cuFuncSetAttribute": (P, INT, INT),
    "cuFuncGetAttribute": (P, INT, P),
    "cuLaunchKernelEx": (P, P, P, P),
    "cuMemGetInfo_v2": (P, P),
    "cuMemAlloc_v2": (P, N),
    "cuMemFree_v2": (A,),
    "cuMemAllocAsync": (P, N, P),
    "cuMemFreeAsync": (A, P),
    "cuDeviceGetDefaultMemPool": (P, INT),
    "cuMemPoolSetAttribute": (P, INT, P),
    "cuMemPoolGetAttribute": (P, INT, P),
    "cuMemHostAlloc": (P, N, U),
    "cuMemFreeHost": (P,),
    "cuMemcpyHtoDAsync_v2": (A, P, N, P),
    "cuMemcpyDtoHAsync_v2": (P, A, N, P),
    "cuMemcpyDtoDAsync_v2": (A, A, N, P),
    "cuMemcpyAsync": (A, A, N, P),
    "cuMemsetD8Async": (A, c_ubyte, N, P),
    "cuGraphCreate": (P, U),
    "cuGraphDestroy": (P,),
    "cuGraphAddKernelNode_v2": (P, P, P, N, P),
    "cuGraphAddMemcpyNode": (P, P, P, N, P, P),
    "cuGraphAddChildGraphNode": (P, P, P, N, P),
    "cuGraphAddNode_v2": (P, P, P, P, N, P),
    "cuGraphConditionalHandleCreate": (P, P, P, U, U),
    "cuGraphInstantiateWithFlags": (P, P, c_uint64),
    "cuGraphExecDestroy": (P,),
    "cuGraphExecKernelNodeSetParams_v2": (P, P, P),
    "cuGraphExecMemcpyNodeSetParams": (P, P, P, P),
    "cuGraphExecChildGraphNodeSetParams": (P, P, P),
    "cuGraphLaunch": (P, P),
}

#: drivers may lack these; callers ask `has` first
OPTIONAL = frozenset(
    "cuDeviceGetUuid_v2 cuMemsetD8Async cuGraphAddNode_v2 cuGraphConditionalHandleCreate cuMemAllocAsync "
    "cuMemFreeAsync cuDeviceGetDefaultMemPool cuMemPoolSetAttribute cuMemPoolGetAttribute".split()
)


class LaunchConfig(Structure):
    """CUlaunchConfig."""

    _fields_ = [
        ("grid", U * 3),
        ("block", U * 3),
        ("shared_bytes", U),
        ("stream", P),
        ("attributes", P),
        ("attribute_count", U),
    ]


class KernelNode(Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2."""

    _fields_ = [
        ("function", P),
        ("grid", U * 3),
        ("block", U * 3),
        ("shared_bytes", U),
        ("params", P),
        ("extra", P),
        ("kernel", P),
        ("context", P),
    ]


class CopyNode(Structure):
    """CUDA_MEMCPY3D_v2; bytes in a row are a copy of height and depth 1."""

    _fields_ = [
        *((n, N) for n in ("source_x", "source_y", "source_z", "source_lod")),
        ("source_type", INT),
        ("source_host", P),
        ("source_device", A),
        ("source_array", P),
        ("reserved0", P),
        ("source_pitch", N),
        ("source_height", N),
        *((n, N) for n in ("target_x", "target_y", "target_z", "target_lod")),
        ("target_type", INT),
        ("target_host", P),
        ("target_device", A),
        ("target_array", P),
        ("reserved1", P),
        ("target_pitch", N),
        ("target_height", N),
        ("width", N),
        ("height", N),
        ("depth", N),
    ]


class ConditionalNode(Structure):
    """CUDA_CONDITIONAL_NODE_PARAMS; the driver writes `bodies`."""

    _fields_ = [("handle", c_uint64), ("type", INT), ("size", U), ("bodies", P), ("context", P)]


class _NodeUnion(ctypes.Union):
    _fields_ = [("padding", c_longlong * 29), ("conditional", ConditionalNode)]


class Node(Structure):
    """CUgraphNodeParams, of which heron uses conditional nodes."""

    _fields_ = [("type", INT), ("reserved0", INT * 3), ("of", _NodeUnion), ("reserved2", c_longlong)]


HOST, DEVICE = 1, 2  # CU_MEMORYTYPE_*
NODE_CONDITIONAL = 13  # CU_GRAPH_NODE_TYPE_CONDITIONAL
IF, WHILE = 0, 1  # CU_GRAPH_COND_TYPE_*
ASSIGN_DEFAULT = 1  # CU_GRAPH_COND_ASSIGN_DEFAULT
STREAM_NON_BLOCKING = 1
EVENT_DISABLE_TIMING = 2
CAPTURE_THREAD_LOCAL = 1
MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
FUNCTION_ATTRIBUTES = {"max_threads": 0, "shared_bytes": 1, "local_bytes": 3, "registers": 4}
JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES = 5, 6
POOL_RELEASE_THRESHOLD, POOL_RESERVED, POOL_USED, POOL_USED_HIGH = 4, 5, 7, 8

#: CU_DEVICE_ATTRIBUTE_*
ATTRIBUTES = {
    "threads_per_block": 1,
    "block_x": 2,
    "block_y": 3,
    "block_z": 4,
    "grid_x": 5,
    "grid_y": 6,
    "grid_z": 7,
    "static_shared_bytes": 8,
    "clock_khz": 13,
    "cores": 16,
    "memory_clock_khz": 36,
    "bus_bits": 37,
    "l2_bytes": 38,
    "threads_per_core": 39,
    "major": 75,
    "minor": 76,
    "shared_bytes_per_core": 81,
    "registers_per_core": 82,
    "shared_bytes_per_block": 97,
    "blocks_per_core": 106,
    "memory_pools": 115,
}

#: CUresult: the values that are handled differently, or are likely
RESULTS = {
    1: "CUDA_ERROR_INVALID_VALUE",
    2: "CUDA_ERROR_OUT_OF_MEMORY",
    3: "CUDA_ERROR_NOT_INITIALIZED",
    4: "CUDA_ERROR_DEINITIALIZED",
    34: "CUDA_ERROR_STUB_LIBRARY",
    46: "CUDA_ERROR_DEVICE_UNAVAILABLE",
    100: "CUDA_ERROR_NO_DEVICE",
    101: "CUDA_ERROR_INVALID_DEVICE",
    200: "CUDA_ERROR_INVALID_IMAGE",
    201: "CUDA_ERROR_INVALID_CONTEXT",
    209: "CUDA_ERROR_NO_BINARY_FOR_GPU",
    218: "CUDA_ERROR_INVALID_PTX",
    221: "CUDA_ERROR_JIT_COMPILER_NOT_FOUND",
    222: "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
    301: "CUDA_ERROR_FILE_NOT_FOUND",
    302: "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND",
    400: "CUDA_ERROR_INVALID_HANDLE",
    500: "CUDA_ERROR_NOT_FOUND",
    600: "CUDA_ERROR_NOT_READY",
    700: "CUDA_ERROR_ILLEGAL_ADDRESS",
    701: "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
    702: "CUDA_ERROR_LAUNCH_TIMEOUT",
    709: "CUDA_ERROR_CONTEXT_IS_DESTROYED",
    710: "CUDA_ERROR_ASSERT",
    714: "CUDA_ERROR_HARDWARE_STACK_ERROR",
    715: "CUDA_ERROR_ILLEGAL_INSTRUCTION",
    716: "CUDA_ERROR_MISALIGNED_ADDRESS",
    717: "CUDA_ERROR_INVALID_ADDRESS_SPACE",
    718: "CUDA_ERROR_INVALID_PC",
    719: "CUDA_ERROR_LAUNCH_FAILED",
    801: "CUDA_ERROR_NOT_SUPPORTED",
    802: "CUDA_ERROR_SYSTEM_NOT_READY",
    803: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
    900: "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
    901: "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
    910: "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE",
    999: "CUDA_ERROR_UNKNOWN",
}
NOT_READY, OUT_OF_MEMORY = 600, 2
#: faults of a kernel: the context is unusable afterwards
FAULTS = frozenset({700, 702, 710, 714, 715, 716, 717, 718, 719})

_instead: Any = None


def library() -> Any:
    """The driver with its functions declared; None without a driver. A missing function is a missing attribute."""
    if _instead is not None:
        return _instead
    try:
        return _load()
    except OSError:
        return None


@once
def _load() -> ctypes.CDLL:
    loaded = ctypes.CDLL("libcuda.so.1")
    for name, arguments in FUNCTIONS.items():
        function = getattr(loaded, name, None)
        if function is not None:
            function.argtypes, function.restype = arguments, c_int
    return loaded


@contextlib.contextmanager
def use(driver: Any) -> Iterator[None]:
    """Use another driver in place of libcuda, such as a recording one in tests. Known devices are forgotten."""
    global _instead
    before, _instead = _instead, driver
    try:
        yield
    finally:
        _instead = before


def read(function: Any, *arguments: Any, kind: Any = c_int) -> Any:
    """The value that a function writes through its first argument; None if it fails."""
    value = kind()
    return None if function(ctypes.byref(value), *arguments) else value.value


def elapsed(driver: Any, start: Any, end: Any) -> float:
    """Seconds between two events that were recorded."""
    milliseconds = c_float()
    driver.cuEventElapsedTime(ctypes.byref(milliseconds), start, end)
    return milliseconds.value / 1e3
