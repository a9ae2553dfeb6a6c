"""Literal: a constant value together with its shape."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heron.hlo import shape as shapes
from heron.hlo.shape import Shape
from heron.hlo.types import ElementType, of_dtype


class Literal:
    """An array (``array``, a read-only NumPy array of logical elements) or a tuple of literals (``parts``)."""

    __slots__ = ("shape", "array", "parts", "_hash")

    def __init__(self, shape: Shape, value: np.ndarray | Sequence[Literal]) -> None:
        self.shape = shape
        self._hash: int | None = None
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

    def is_all(self, value: float) -> bool:
        """Whether every element equals `value` (NaN never does; -0.0 equals 0)."""
        return self.shape.is_array and self.array.size > 0 and bool((self.array == value).all())

    def __eq__(self, other: object) -> bool:
        """Bitwise: NaNs with the same bits are equal, 0.0 and -0.0 are not."""
        if not isinstance(other, Literal) or self.shape.bare is not other.shape.bare:
            return False
        if self.shape.is_tuple:
            return self.parts == other.parts
        return self.array is other.array or self.array.tobytes() == other.array.tobytes()

    def __hash__(self) -> int:
        if self._hash is None:
            body: object = self.parts if self.shape.is_tuple else self.array.tobytes()
            self._hash = hash((self.shape.bare, body))
        return self._hash

    def __repr__(self) -> str:
        if self.shape.is_tuple:
            return f"Literal({', '.join(map(repr, self.parts))})"
        return f"Literal({self.shape.bare}, {self.array.tolist()!r:.60})"


def scalar(element_type: ElementType, value: object) -> Literal:
    """A rank-0 literal."""
    return Literal(shapes.scalar(element_type), np.asarray(value).astype(element_type.dtype))


def of(array: np.ndarray) -> Literal:
    """A literal of a NumPy array, with the default layout."""
    array = np.asarray(array)
    return Literal(shapes.row_major(of_dtype(array.dtype), *array.shape), array)
