"""Tables of roots of unity for Fourier transforms."""

from __future__ import annotations

from functools import cache

import numpy as np

from heron.hlo.ir.types import ElementType


@cache
def roots(n: int, count: int, element: ElementType) -> np.ndarray:
    """``exp(-2 pi i k / n)`` for k < `count`, as pairs of parts."""
    turns = np.arange(count, dtype=np.longdouble) / n
    angles = 2 * np.longdouble("3.14159265358979323846264338327950288") * turns
    return pairs_of(np.stack([np.cos(angles), -np.sin(angles)], axis=-1), element)


def pairs_of(numbers: np.ndarray, element: ElementType) -> np.ndarray:
    """Numbers as a table that code reads, at an address that vectors want."""
    room = np.empty(numbers.size * element.byte_size + _LINE, np.uint8)
    start = -room.ctypes.data % _LINE
    table = room[start : start + numbers.size * element.byte_size].view(element.dtype).reshape(numbers.shape)
    table[...] = numbers
    return table


_LINE = 64
