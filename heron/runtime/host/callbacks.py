"""Functions of the user's that programs call: filed by number, which is what a program can carry.

A number belongs to this process, so that a program from another process finds no function instead of a wrong one.
"""

from __future__ import annotations

import itertools
import secrets
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from heron.errors import HeronError


class Filed:
    """A function with its number; it can be found as long as this lives.

    ``context``: what a function of buffers gets first.
    """

    def __init__(self, function: Callable[..., Any], context: Any = None) -> None:
        self.function, self.context = function, context
        self.number = next(_NUMBERS)
        _FILED[self.number] = self


_FILED: weakref.WeakValueDictionary[int, Filed] = weakref.WeakValueDictionary()
_NUMBERS = itertools.count(secrets.randbits(40) << 20)


def find(number: int) -> Filed:
    """The function of that number. Raises RUN060 when it is gone, or of another process."""
    found = _FILED.get(number)
    if found is None:
        raise HeronError(
            "RUN060",
            f"the Python function number {number} of this program is not in this process",
            hint="compile the program again from the function that calls it",
        )
    return found


class Callback:
    """A routine: calls a filed function with NumPy arrays and copies its results.

    ``tokens``: whether the function takes a token first and gives one first.
    """

    def __init__(self, filed: Filed, operands: int, tokens: bool) -> None:
        self.filed, self.operands, self.tokens = filed, operands, tokens

    def __call__(self, *arrays: np.ndarray) -> None:
        function = self.filed.function
        given = [a.copy() for a in arrays[: self.operands]]  # the program's memory has other uses afterwards
        for a in given:
            a.flags.writeable = False
        results = function(None, *given)[1:] if self.tokens else function(*given)
        for place, result in zip(arrays[self.operands :], results, strict=True):
            place[...] = result


class Buffer:
    """Memory of a running program, as a function of buffers gets it: to be read, or as a result to be written into.

    Arrays NumPy makes of it share the memory, and are good until the function returns.
    """

    def __init__(self, array: np.ndarray, writeable: bool) -> None:
        self._array = array.view()
        self._array.flags.writeable = writeable

    @property
    def shape(self) -> tuple[int, ...]:
        return self._array.shape

    @property
    def dtype(self) -> np.dtype:
        return self._array.dtype

    @property
    def ndim(self) -> int:
        return self._array.ndim

    @property
    def writeable(self) -> bool:
        return self._array.flags.writeable

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._array, dtype, copy=copy)

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[Any, int]:
        return self._array.__dlpack_device__()


class BufferCallback:
    """A routine: calls a filed function with the program's own memory: operands, then results."""

    def __init__(self, filed: Filed, operands: int) -> None:
        self.filed, self.operands = filed, operands

    def __call__(self, *arrays: np.ndarray) -> None:
        buffers = [Buffer(a, n >= self.operands) for n, a in enumerate(arrays)]
        self.filed.function(self.filed.context, *buffers)
