"""DLPack of JAX's arrays on heron, whose memory is the host's; JAX knows the platforms it shares memory of by name."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from heron import targets
from heron.pjrt import jax_name
from heron.pjrt.device import PLATFORM

#: DLPack's number of a CPU's memory
_CPU = (1, 0)
#: DLPack's numbers of types NumPy cannot hand out
_CODES = {
    "bfloat16": 4, "float8_e3m4": 7, "float8_e4m3": 8, "float8_e4m3b11fnuz": 9, "float8_e4m3fn": 10,
    "float8_e4m3fnuz": 11, "float8_e5m2": 12, "float8_e5m2fnuz": 13, "float8_e8m0fnu": 14,
}  # fmt: skip
#: where a DLManagedTensor has the number of its type: behind the pointer, the device and the rank
_CODE_AT = 20


def install() -> None:
    """Teach arrays of the platform heron `__dlpack__` and `__dlpack_device__`, and `from_dlpack` that the host's memory
    is heron's where heron is the default; other arrays keep their own."""
    _take_in()
    if jax_name.is_cpu():
        return  # arrays of the CPU know how
    from jax._src.array import ArrayImpl

    to_capsule, device = ArrayImpl.__dlpack__, ArrayImpl.__dlpack_device__

    def __dlpack__(self: Any, **options: Any) -> Any:
        wanted = options.get("dl_device")
        is_host = wanted is not None and (int(wanted[0]), int(wanted[1])) == _CPU
        if not _is_ours(self):
            if is_host:
                return to_capsule(_on_cpu(self), **{**options, "dl_device": None})
            return to_capsule(self, **options)
        if wanted is not None and not is_host:
            raise BufferError(f"arrays of {PLATFORM} lie in the host's memory, not on device {wanted}")
        shared = np.array(self) if options.get("copy") else np.asarray(self)
        return _capsule(shared)

    def __dlpack_device__(self: Any) -> Any:
        return _CPU if _is_ours(self) else device(self)

    ArrayImpl.__dlpack__ = __dlpack__  # type: ignore[method-assign]
    ArrayImpl.__dlpack_device__ = __dlpack_device__  # type: ignore[method-assign]


def _on_cpu(array: Any) -> Any:
    """The array on JAX's CPU."""
    import jax

    return array if array.platform() == "cpu" else jax.device_put(array, jax.devices("cpu")[0])


def _take_in() -> None:
    from jax._src import dlpack as module

    dlpack: Any = module
    dlpack._DL_DEVICE_TO_PLATFORM = _Platforms(dlpack._DL_DEVICE_TO_PLATFORM)
    if not isinstance(dlpack._jax, _Jaxlib):
        dlpack._jax = _Jaxlib(dlpack._jax)


class _Platforms(dict):
    """Platforms by DLPack's device types. The host's memory is that of heron's devices where they are the default."""

    def __getitem__(self, kind: Any) -> str:
        from jax._src import xla_bridge

        default = xla_bridge.get_backend()
        if int(kind) != _CPU[0] or default.platform != PLATFORM or _is_gpu(default.local_devices()[0]):
            return super().__getitem__(kind)
        return PLATFORM


def _is_gpu(device: Any) -> bool:
    """Whether its memory is a GPU's own."""
    return targets.get(device.device_kind).is_gpu and not targets.get(device.device_kind).sim


class _Jaxlib:
    """jaxlib for `jax.dlpack`: memory that is to be copied comes to heron by way of JAX's CPU, or is shared first. The
    client of PJRT's C interface does not copy."""

    def __init__(self, jaxlib: Any) -> None:
        self._jaxlib = jaxlib

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jaxlib, name)

    def dlpack_managed_tensor_to_buffer(self, tensor: Any, device: Any, stream: Any, copy: Any, *more: Any) -> Any:
        import jax

        make = self._jaxlib.dlpack_managed_tensor_to_buffer
        if not jax_name.is_ours(device) or not copy:
            return make(tensor, device, stream, copy, *more)
        if jax_name.is_cpu():
            return jax.numpy.array(make(tensor, device, stream, False, *more), copy=True)
        return jax.device_put(make(tensor, jax.devices("cpu")[0], stream, copy, *more), device)


def _is_ours(array: Any) -> bool:
    return next(iter(array.sharding.device_set)).platform == PLATFORM and len(array.sharding.device_set) == 1


def _capsule(array: np.ndarray) -> Any:
    """The array's memory as DLPack; types NumPy has no word for are named in what it makes of their bits."""
    if not array.flags.writeable:  # DLPack before 1.0 cannot say so; JAX's own arrays go out this way too
        array = _writeable(array)
    code = _CODES.get(array.dtype.name)
    if code is None:
        return array.__dlpack__()
    capsule = array.view(np.dtype(f"u{array.itemsize}")).__dlpack__()
    ctypes.c_uint8.from_address(_pointer(capsule) + _CODE_AT).value = code
    return capsule


def _pointer(capsule: Any) -> int:
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return get(capsule, b"dltensor")


def _writeable(array: np.ndarray) -> np.ndarray:
    """The same memory, without the mark that it must not change."""
    size = max(1, array.nbytes)
    raw: Any = (ctypes.c_uint8 * size).from_address(array.ctypes.data)
    raw.owner = array  # keeps the memory
    return np.ndarray(array.shape, array.dtype, raw, 0, array.strides)
