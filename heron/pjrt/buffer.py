"""Buffer: an array on a device, maybe not computed yet."""

from __future__ import annotations

from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from heron.errors import HeronError
from heron.hlo.ir.types import ElementType
from heron.pjrt.event import Event

if TYPE_CHECKING:
    from heron.pjrt.device import Device, Memory


@cache
def row_major(rank: int) -> tuple[int, ...]:
    """Dimensions of a row-major array, the last one first."""
    return tuple(reversed(range(rank)))


class Buffer:
    """An array in a memory. Its elements lie row-major unless ``minor_to_major`` says otherwise; sub-byte types take a
    byte each, as in NumPy.

    ``ready`` is the event of what computes it; the array is there once it is. On a GPU it is there, as a `DeviceArray`,
    when the work that computes it is enqueued. Deleted or donated, a buffer keeps its type and dimensions only.

    >>> import numpy as np
    >>> from heron import pjrt
    >>> b = pjrt.Client("cpu").buffer_from_host(np.zeros((2, 3), np.int8))
    >>> b.element_type, b.dims, b.size_in_bytes
    (s8, (2, 3), 6)
    >>> b.delete()
    >>> b.to_host()
    Traceback (most recent call last):
    ...
    heron.errors.HeronError: error[PJRT004]: Buffer has been deleted or donated: s8[2,3]
    """

    __slots__ = (
        "__weakref__",
        "_array",
        "deleted",
        "dims",
        "element_type",
        "handle",
        "memory",
        "minor_to_major",
        "owned",
        "ready",
        "size_in_bytes",
    )

    def __init__(
        self,
        memory: Memory,
        element_type: ElementType,
        dims: tuple[int, ...],
        array: Any,
        owned: bool,
        minor_to_major: tuple[int, ...] | None = None,
    ) -> None:
        self.memory, self.element_type, self.dims = memory, element_type, dims
        self.minor_to_major = row_major(len(dims)) if minor_to_major is None else minor_to_major
        self._array = memory.hold(array)
        self.owned = owned  # the memory is not somebody else's
        self.ready = Event() if array is None else Event.done()
        self.deleted = False
        #: what C code knows it by, and counts in who refers to its memory
        self.handle: Any = None
        #: bytes it takes in its memory
        self.size_in_bytes = element_type.byte_size * prod(dims)
        memory.device.memory_stats.add(self.size_in_bytes)

    def __del__(self) -> None:
        if not self.deleted:
            self.memory.device.memory_stats.add(-self.size_in_bytes)

    @property
    def device(self) -> Device:
        return self.memory.device

    # -- being computed ----------------------------------------------------------------------------------------------
    def fulfil(self, array: Any) -> None:
        """The array is there."""
        self._array = found = self.memory.hold(array)
        if self.handle is not None and isinstance(found, np.ndarray):
            self.handle.array = id(found)
        self.ready.set()

    def enqueued(self, array: Any) -> None:
        """The GPU will have computed the array before it does what is enqueued from now on."""
        self._array = array

    def fail(self, error: BaseException) -> None:
        """It will not be there: whoever wants it gets the error."""
        self.ready.set(error)

    def array_now(self) -> Any:
        """The elements if they are there, else None; never waits or raises."""
        return None if self.deleted else self._array

    def array(self) -> np.ndarray:
        """The elements themselves, no copy unless they are on a GPU; waits for them. Raises as `held` does."""
        found = self.held()
        return found if isinstance(found, np.ndarray) else found.numpy()

    def held(self) -> Any:
        """The array the memory holds, waited for: NumPy's, or a `DeviceArray`.

        Raises PJRT004 for a deleted buffer, and what its computation failed with.
        """
        if not self.ready.is_ready:
            self.ready.wait()
        if self.ready.error is not None:
            raise self.ready.error
        found = self._array
        if found is None:
            raise self.gone()
        return found

    def gone(self) -> HeronError:
        """The error of using a buffer that is no more."""
        return HeronError("PJRT004", f"Buffer has been deleted or donated: {self}")

    # -- to the host and elsewhere -----------------------------------------------------------------------------------
    def to_host(self) -> np.ndarray:
        """A copy as NumPy array."""
        return self.array().copy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        found = self.array()
        if dtype is not None and found.dtype != dtype:
            return found.astype(dtype)
        return found.copy() if copy else found

    def __dlpack__(self, **kwargs: Any) -> Any:
        return self.array().__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array().__dlpack_device__()

    def copy_to(self, memory: Memory) -> Buffer:
        """A copy in another memory, made when this one is ready."""
        copy = Buffer(memory, self.element_type, self.dims, None, owned=True, minor_to_major=self.minor_to_major)

        def fill(error: BaseException | None) -> None:
            try:
                copy.fulfil(self.array().copy(order="K"))
            except Exception as e:
                copy.fail(e)

        self.ready.on_ready(fill)
        return copy

    @property
    def pointer(self) -> int:
        """Address of the first element."""
        found = self.held()
        return found.ctypes.data if isinstance(found, np.ndarray) else found.address

    # -- the end -----------------------------------------------------------------------------------------------------
    def delete(self) -> None:
        """Let the memory go, when nothing that is under way reads it any more."""
        if not self.deleted:
            self.deleted = True
            self.memory.device.memory_stats.add(-self.size_in_bytes)
            if self.ready.is_ready and not self._is_seen:
                if self.handle is not None:
                    self.handle.array = 0
                self._array = None

    @property
    def is_alone(self) -> bool:
        """Whether nobody else sees the memory, so that a program it is donated to may write there."""
        return self.owned and not self._is_seen

    @property
    def _is_seen(self) -> bool:
        """Whether somebody outside looks at the memory: it stays until the handle goes."""
        return self.handle is not None and self.handle.external > 0

    def __str__(self) -> str:
        return f"{self.element_type}[{','.join(map(str, self.dims))}]"

    def __repr__(self) -> str:
        return f"<Buffer {self} on {self.device}>"
