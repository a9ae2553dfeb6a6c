"""DLPack of JAX's arrays on heron, whose memory is the host's; JAX knows the platforms it shares memory of by name."""

from __future__ import annotations

from typing import Any

import numpy as np

from heron.pjrt.device import PLATFORM

#: DLPack's number of a CPU's memory
_CPU = (1, 0)


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
        if options.pop("copy", None):
            return np.array(self).__dlpack__()
        shared = np.asarray(self)
        if not shared.flags.writeable:  # DLPack before 1.0 cannot say so; JAX's own arrays go out this way too
            shared = _writeable(shared)
        return shared.__dlpack__()

    def __dlpack_device__(self: Any) -> Any:
        return _CPU if _is_ours(self) else device(self)

    ArrayImpl.__dlpack__ = __dlpack__  # type: ignore[method-assign]
    ArrayImpl.__dlpack_device__ = __dlpack_device__  # type: ignore[method-assign]


def _is_ours(array: Any) -> bool:
    return next(iter(array.sharding.device_set)).platform == PLATFORM and len(array.sharding.device_set) == 1


def _writeable(array: np.ndarray) -> np.ndarray:
    """The same memory, without the mark that it must not change."""
    import ctypes

    size = max(1, array.nbytes)
    raw: Any = (ctypes.c_uint8 * size).from_address(array.ctypes.data)
    raw.owner = array  # keeps the memory
    return np.frombuffer(raw, np.uint8, count=array.nbytes).view(array.dtype).reshape(array.shape)
