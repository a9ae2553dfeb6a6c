"""The header's lists of aliases (outputs that share parameters' memory) and donors (parameters that may be reused).

A parameter *must* or *may* be aliased with an output (``input_output_alias``); a donor may be, at the compiler's choice
(``buffer_donor``). Source: https://openxla.org/xla/aliasing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple
from typing import Literal as OneOf

from heron.errors import HeronError
from heron.hlo.ir.shape import Shape, ShapeIndex

if TYPE_CHECKING:
    from heron.hlo.ir.module import Module

Kind = OneOf["may-alias", "must-alias"]


class Alias(NamedTuple):
    """The part `output` of the result lives in the part `index` of parameter number `parameter`."""

    output: ShapeIndex
    parameter: int
    index: ShapeIndex  # pyright: ignore[reportIncompatibleMethodOverride]
    kind: Kind = "may-alias"

    @property
    def must(self) -> bool:
        """Whether the caller counts on it."""
        return self.kind == "must-alias"


class Donor(NamedTuple):
    """The part `index` of parameter number `parameter` is the program's to overwrite."""

    parameter: int
    index: ShapeIndex  # pyright: ignore[reportIncompatibleMethodOverride]


class InputOutputAliases:
    """The aliases of a module, read and written in its header; iterates over `Alias`."""

    _FIELD = "input_output_alias"

    def __init__(self, module: Module) -> None:
        self.module = module

    def __iter__(self) -> Iterator[Alias]:
        return (Alias(*a) for a in self.module.header.get(self._FIELD, ()))

    def __len__(self) -> int:
        return len(self.module.header.get(self._FIELD, ()))

    def aliased_parameter(self, output: ShapeIndex = ()) -> Alias | None:
        """The alias of a part of the result, if it has one."""
        return next((a for a in self if a.output == output), None)

    def aliased_output(self, parameter: int, index: ShapeIndex = ()) -> Alias | None:
        """The alias of a part of a parameter, if it has one."""
        return next((a for a in self if (a.parameter, a.index) == (parameter, index)), None)

    def has_alias(self, output: ShapeIndex = ()) -> bool:
        """Whether a part of the result is aliased."""
        return self.aliased_parameter(output) is not None

    def set_up(self, output: ShapeIndex, parameter: int, index: ShapeIndex = (), kind: Kind = "may-alias") -> Alias:
        """Let a part of the result live in a part of a parameter, which is then no donor any more.

        Raises HLO024 when there is no such part, one of them is aliased already, or they differ in size.
        """
        result, source = _part(self.module.result_shape, output), _parameter_part(self.module, parameter, index)
        if result.byte_size != source.byte_size:
            raise HeronError("HLO024", "aliased parts must be of one size", why=f"output {result}, parameter {source}")
        if self.has_alias(output) or self.aliased_output(parameter, index):
            raise HeronError("HLO024", f"output {output} or parameter {parameter} {index} is aliased already")
        found = Alias(tuple(output), parameter, tuple(index), kind)
        _set(self.module, self._FIELD, (*self.module.header.get(self._FIELD, ()), tuple(found)))
        self.module.buffer_donors.remove(parameter, index)
        return found

    def remove(self, output: ShapeIndex) -> None:
        """Forget the alias of a part of the result, if there is one."""
        _set(self.module, self._FIELD, tuple(tuple(a) for a in self if a.output != output))


class BufferDonors:
    """The donors of a module, read and written in its header; iterates over `Donor`."""

    _FIELD = "buffer_donor"

    def __init__(self, module: Module) -> None:
        self.module = module

    def __iter__(self) -> Iterator[Donor]:
        return (Donor(*d) for d in self.module.header.get(self._FIELD, ()))

    def __len__(self) -> int:
        return len(self.module.header.get(self._FIELD, ()))

    def is_donor(self, parameter: int, index: ShapeIndex = ()) -> bool:
        """Whether a part of a parameter may be overwritten, though no output must be there."""
        return Donor(parameter, index) in set(self)

    def add(self, parameter: int, index: ShapeIndex = ()) -> Donor:
        """Let the program overwrite a part of a parameter. Raises HLO024 when there is none, or it is aliased."""
        _parameter_part(self.module, parameter, index)
        if self.module.input_output_aliases.aliased_output(parameter, index):
            raise HeronError("HLO024", f"parameter {parameter} {index} is aliased already")
        found = Donor(parameter, tuple(index))
        if found not in set(self):
            _set(self.module, self._FIELD, (*self.module.header.get(self._FIELD, ()), tuple(found)))
        return found

    def remove(self, parameter: int, index: ShapeIndex = ()) -> None:
        """Keep the program from overwriting a part of a parameter."""
        _set(self.module, self._FIELD, tuple(tuple(d) for d in self if d != (parameter, tuple(index))))


def _set(module: Module, name: str, value: tuple[object, ...]) -> None:
    if value:
        module.header[name] = value
    else:
        module.header.pop(name, None)


def _parameter_part(module: Module, parameter: int, index: ShapeIndex) -> Shape:
    shapes = module.parameter_shapes
    if not 0 <= parameter < len(shapes):
        raise HeronError("HLO024", f"there is no parameter {parameter}", why=f"the entry takes {len(shapes)}")
    return _part(shapes[parameter], index)


def _part(shape: Shape, index: ShapeIndex) -> Shape:
    try:
        return shape.at(tuple(index))
    except IndexError:
        raise HeronError("HLO024", f"there is no part {tuple(index)}", why=f"the shape is {shape}") from None
