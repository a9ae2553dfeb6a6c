"""Parameters that tell the size of a dimension of another one, as programs before bounded shapes did it.

The header's ``dynamic_parameter_binding={(0, {}): (1, {}, 0)}``: parameter 0 says how many elements dimension 0 of
parameter 1 has.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from heron.errors import HeronError
from heron.hlo.ir.shape import ShapeIndex
from heron.hlo.ir.words import Words

if TYPE_CHECKING:
    from heron.hlo.ir.module import Module

_FIELD = "dynamic_parameter_binding"


class SizeParameter(NamedTuple):
    """The part of a parameter that says a size: an integer scalar."""

    parameter: int
    index: ShapeIndex = ()  # pyright: ignore[reportIncompatibleMethodOverride]


class DynamicDimension(NamedTuple):
    """A dimension of a part of a parameter."""

    parameter: int
    index: ShapeIndex  # pyright: ignore[reportIncompatibleMethodOverride]
    dimension: int


class DynamicParameters:
    """The bindings of a module, read and written in its header; iterates over (dimension, what says its size).

    Raises HLO028 when the header's text is none.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self._bindings = dict(_read(module.header[_FIELD])) if _FIELD in module.header else {}

    def __iter__(self) -> Iterator[tuple[DynamicDimension, SizeParameter]]:
        return iter(self._bindings.items())

    def __len__(self) -> int:
        return len(self._bindings)

    def size_of(self, dimension: DynamicDimension) -> SizeParameter | None:
        """The parameter that holds the size of a dimension; None if it is not bound."""
        return self._bindings.get(dimension)

    def bind(self, size: SizeParameter, dimension: DynamicDimension) -> None:
        """Let `size` say how large `dimension` is. Raises HLO028 when there is no such part, or one does not fit."""
        self.check(size, dimension)
        if dimension in self._bindings:
            raise HeronError("HLO028", f"the size of {_dimension(dimension)} is bound already")
        self._bindings[dimension] = size
        self._write()

    def verify(self) -> None:
        """Raises HLO028 when a binding speaks of a parameter or dimension that is not there."""
        for dimension, size in self:
            self.check(size, dimension)

    def check(self, size: SizeParameter, dimension: DynamicDimension) -> None:
        """Raises HLO028 when `size` cannot tell the size of `dimension`: a part is not there, or not of the kind."""
        shapes = self.module.parameter_shapes
        for number, index in (size[:2], dimension[:2]):
            try:
                shapes[number if number >= 0 else len(shapes)].at(index)
            except IndexError:
                what = f"there is no part {list(index)} of parameter {number}"
                raise HeronError("HLO028", what, why=f"the entry takes {len(shapes)} parameters") from None
        told, target = shapes[size.parameter].at(size.index), shapes[dimension.parameter].at(dimension.index)
        if told.rank or not told.element_type.is_integer:
            raise HeronError("HLO028", "a size is an integer scalar", why=f"parameter {size.parameter} is {told}")
        if not 0 <= dimension.dimension < target.rank:
            raise HeronError("HLO028", f"there is no {_dimension(dimension)}", why=f"the shape is {target}")

    def _write(self) -> None:
        self.module.header.pop(_FIELD, None)
        if self._bindings:
            self.module.header[_FIELD] = str(self)

    def __str__(self) -> str:
        pairs = (
            f"({s.parameter}, {_index(s.index)}): ({d.parameter}, {_index(d.index)}, {d.dimension})" for d, s in self
        )
        return "{" + ", ".join(pairs) + "}"


def _index(index: ShapeIndex) -> str:
    return "{" + ",".join(map(str, index)) + "}"


def _dimension(d: DynamicDimension) -> str:
    return f"dimension {d.dimension} of parameter {d.parameter} {_index(d.index)}"


def _read(text: str) -> Iterator[tuple[DynamicDimension, SizeParameter]]:
    w = Words(text, _FIELD, "HLO028")
    w.expect("{")
    first = True
    while not w.accept("}"):
        if not first:
            w.expect(",")
        first = False
        size = SizeParameter(*_part(w))
        w.expect(")")
        w.expect(":")
        target = _part(w)
        w.expect(",")
        yield DynamicDimension(*target, w.integer()), size
        w.expect(")")
    w.end()


def _part(w: Words) -> tuple[int, ShapeIndex]:
    """``(1, {0,2}`` without the closing parenthesis."""
    w.expect("(")
    number = w.integer()
    w.expect(",")
    w.expect("{")
    return number, tuple(w.integers("}"))
