"""Literal: a constant value together with its shape."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

import numpy as np

from heron.hlo.ir import shape as shapes
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import ElementType, of_dtype

#: bytes up to which a literal is its own key
_SHORT = 64
#: elements of an array that its repr begins with
_SHOWN = 20
#: bytes hashed at a time of an array that does not lie in rows
_CHUNK = 1 << 22


class Literal:
    """An array (``array``, a read-only NumPy array of logical elements) or a tuple of literals (``parts``)."""

    __slots__ = ("shape", "array", "parts", "_key")

    def __init__(self, shape: Shape, value: np.ndarray | Sequence[Literal]) -> None:
        self.shape = shape
        self._key: bytes | None = None
        if shape.is_tuple:
            self.parts: tuple[Literal, ...] = tuple(value)  # type: ignore[arg-type]
            self.array = np.empty(0)
            return
        self.parts = ()
        array = np.asarray(value, dtype=shape.element_type.dtype)
        if array.shape != shape.dims:
            array = np.broadcast_to(array, shape.dims)
        if array.flags.writeable:
            array = array.view()
            array.flags.writeable = False
        self.array: np.ndarray = array

    @property
    def is_scalar(self) -> bool:
        return self.shape.is_scalar

    def item(self) -> bool | int | float | complex:
        """The Python value of a one-element literal."""
        value = self.array.reshape(()).item()
        if self.shape.element_type.is_float:
            return float(value)
        return int(value) if self.shape.element_type.is_integer else value

    @property
    def key(self) -> bytes:
        """The bytes of the elements, row-major; of more than 64 bytes a digest of 128 bits. Worked out once.

        Literals of one shape are equal if their keys are.
        """
        if self._key is None:
            if self.shape.is_tuple:
                self._key = b"".join(part.key for part in self.parts)
            elif self.array.nbytes <= _SHORT:
                self._key = self.array.tobytes()
            else:
                self._key = _digest(self.array)
        return self._key

    def __eq__(self, other: object) -> bool:
        """Bitwise: NaNs with the same bits are equal, 0.0 and -0.0 are not."""
        if self is other:
            return True
        return isinstance(other, Literal) and self.shape.bare is other.shape.bare and self.key == other.key

    def __hash__(self) -> int:
        return hash((self.shape.bare, self.key))

    def __repr__(self) -> str:
        if self.shape.is_tuple:
            return f"Literal({', '.join(map(repr, self.parts))})"
        shown = self.array if self.array.size <= _SHOWN else self.array.flat[:_SHOWN]
        return f"Literal({self.shape.bare}, {shown.tolist()!r:.60})"


def _digest(array: np.ndarray) -> bytes:
    """128 bits of the bytes of the elements, row-major, whatever their strides. Of elements that are all the same, as
    those of most constants that are large, one is enough."""
    same = _same_element(array)
    if same is not None:
        return hashlib.blake2b(same, digest_size=16, person=b"one element").digest()
    made = hashlib.blake2b(digest_size=16)
    for part in _in_rows(array):
        made.update(part)
    return made.digest()


def _same_element(array: np.ndarray) -> bytes | None:
    """The bytes that every element of a non-empty array has; None where some differ."""
    first, last = (array[(at,) * array.ndim].tobytes() for at in (slice(0, 1), slice(-1, None)))
    if not any(stride for stride, size in zip(array.strides, array.shape, strict=True) if size > 1):
        return first
    if first != last:
        return None
    wanted = np.frombuffer(first, np.uint8)
    parts = (np.frombuffer(part, np.uint8).reshape(-1, array.itemsize) for part in _in_rows(array))
    return first if all((part == wanted).all() for part in parts) else None


def _in_rows(array: np.ndarray) -> Iterator[memoryview]:
    """The bytes of an array in row-major order, without a copy of the whole."""
    if array.flags.c_contiguous:
        yield array.reshape(-1).view(np.uint8).data
        return
    count = max(1, _CHUNK // array.itemsize)
    for start in range(0, array.size, count):
        yield array.flat[start : start + count].view(np.uint8).data


def scalar(element_type: ElementType, value: object) -> Literal:
    """A rank-0 literal."""
    return Literal(shapes.scalar(element_type), np.asarray(value).astype(element_type.dtype))


def of(array: np.ndarray) -> Literal:
    """A literal of a NumPy array, with the default layout."""
    array = np.asarray(array)
    return Literal(shapes.row_major(of_dtype(array.dtype), *array.shape), array)
