"""Arrays on a GPU: what programs take and give when nothing goes through the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heron.errors import HeronError

if TYPE_CHECKING:
    from heron.runtime.cuda.device import Device


class DeviceArray:
    """An array in a GPU's memory, dense, its dimensions in `order` there (slowest first; default row-major).

    CuPy, PyTorch and Numba take it as it is (``__cuda_array_interface__``). Its memory is given back with it.
    """

    __slots__ = ("__weakref__", "address", "device", "dtype", "epoch", "order", "shape", "size")

    def __init__(
        self, device: Device, dtype: np.dtype, shape: tuple[int, ...], order: tuple[int, ...] | None = None
    ) -> None:
        self.device, self.dtype, self.shape, self.order = device, dtype, shape, order
        size = dtype.itemsize
        for n in shape:
            size *= n
        self.size = size
        self.address = device.memory.allocate(size)
        self.epoch = device.epoch

    def __del__(self) -> None:
        address = getattr(self, "address", 0)
        if address and self.epoch == self.device.epoch:
            self.device.memory.free(address, self.size)

    def __repr__(self) -> str:
        return f"DeviceArray({self.dtype}{list(self.shape)} on {self.device.name})"

    @property
    def is_lost(self) -> bool:
        """Whether a reset of the device has taken its memory, or a program it was donated to."""
        return not self.address or self.epoch != self.device.epoch

    def need(self) -> None:
        """Raise RUN047 if it is lost."""
        if self.is_lost:
            why = "it was donated to a program" if not self.address else "the device was reset after a fault"
            raise HeronError("RUN047", "this device array has no memory any more", where=repr(self), why=why)

    def give_up(self) -> None:
        """Its memory belongs to somebody else from now on."""
        self.address = 0

    def numpy(self) -> np.ndarray:
        """Its values on the host; waits until they are computed."""
        self.need()
        order = self.order or tuple(range(len(self.shape)))
        stored = np.empty([self.shape[d] for d in order], self.dtype)
        with self.device.at_work():
            self.device.staging.to_host(self.address, stored)
        return stored.transpose(np.argsort(order))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        values = self.numpy()
        return values if dtype is None else values.astype(dtype)

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes between neighbours in each dimension."""
        order = self.order or tuple(range(len(self.shape)))
        strides, step = [0] * len(order), self.dtype.itemsize
        for d in reversed(order):
            strides[d] = step
            step *= self.shape[d]
        return tuple(strides)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        self.need()
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address, False),
            "strides": None if self.order is None else self.strides,
            "version": 3,
            "stream": self.device.stream,
        }


def put(array: Any, device: Device, order: tuple[int, ...] | None = None) -> DeviceArray:
    """Copy an array to a device, its dimensions in that order there. Raises RUN043 when memory is short."""
    values = np.asarray(array)
    if order == tuple(range(values.ndim)):
        order = None
    stored = np.ascontiguousarray(values if order is None else values.transpose(order))
    with device.at_work():
        made = DeviceArray(device, values.dtype, values.shape, order)
        device.staging.to_device(stored, made.address)
    return made
