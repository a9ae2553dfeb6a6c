"""DLPack of JAX's arrays on heron, whose memory is the host's; JAX knows the platforms it shares memory of by name."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

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
    """Teach arrays of the platform heron `__dlpack__` and `__dlpack_device__`; others keep their own."""
    from jax._src.array import ArrayImpl

    to_capsule, device = ArrayImpl.__dlpack__, ArrayImpl.__dlpack_device__

    def __dlpack__(self: Any, **options: Any) -> Any:
        if not _is_ours(self):
            return to_capsule(self, **options)
        wanted = options.pop("dl_device", None)
        if wanted is not None and (int(wanted[0]), int(wanted[1])) != _CPU:
            raise BufferError(f"arrays of {PLATFORM} lie in the host's memory, not on device {wanted}")
        shared = np.array(self) if options.pop("copy", None) else np.asarray(self)
        return _capsule(shared)

    def __dlpack_device__(self: Any) -> Any:
        return _CPU if _is_ours(self) else device(self)

    ArrayImpl.__dlpack__ = __dlpack__  # type: ignore[method-assign]
    ArrayImpl.__dlpack_device__ = __dlpack_device__  # type: ignore[method-assign]


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
