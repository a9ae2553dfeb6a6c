"""Which outputs share the memory of which parameters, and which parameters may be reused: the header's lists.

A parameter *must* or *may* be aliased with an output (``input_output_alias``); a donor may be, at the compiler's choice
(``buffer_donor``). Source: https://openxla.org/xla/aliasing.
"""

from __future__ import annotations

from typing import Literal as OneOf
from typing import NamedTuple

from heron.errors import HeronError
from heron.hlo.module import Module
from heron.hlo.shape import Shape, ShapeIndex

Kind = OneOf["may-alias", "must-alias"]


class Alias(NamedTuple):
    """The part `output` of the result lives in the part `index` of parameter number `parameter`."""

    output: ShapeIndex
    parameter: int
    index: ShapeIndex
    kind: Kind = "may-alias"


class Donor(NamedTuple):
    """The part `index` of parameter number `parameter` is the program's to overwrite."""

    parameter: int
    index: ShapeIndex


def aliases(module: Module) -> tuple[Alias, ...]:
    """All aliases, as the header has them."""
    return tuple(Alias(*a) for a in module.header.get("input_output_alias", ()))


def donors(module: Module) -> tuple[Donor, ...]:
    """All donors, as the header has them."""
    return tuple(Donor(*d) for d in module.header.get("buffer_donor", ()))


def aliased_parameter(module: Module, output: ShapeIndex = ()) -> Alias | None:
    """The alias of a part of the result, if it has one."""
    return next((a for a in aliases(module) if a.output == output), None)


def aliased_output(module: Module, parameter: int, index: ShapeIndex = ()) -> Alias | None:
    """The alias of a part of a parameter, if it has one."""
    return next((a for a in aliases(module) if (a.parameter, a.index) == (parameter, index)), None)


def is_donor(module: Module, parameter: int, index: ShapeIndex = ()) -> bool:
    """Whether a part of a parameter may be overwritten, though no output must be there."""
    return Donor(parameter, index) in donors(module)


def add_alias(
    module: Module, output: ShapeIndex, parameter: int, index: ShapeIndex = (), kind: Kind = "may-alias"
) -> Alias:
    """Let a part of the result live in a part of a parameter, which is then no donor any more.

    Raises HLO024 when there is no such part, one of them is aliased already, or they differ in size.
    """
    result, source = _part(module.result_shape, output), _parameter_part(module, parameter, index)
    if result.byte_size != source.byte_size:
        raise HeronError("HLO024", "aliased parts must be of one size", why=f"output {result}, parameter {source}")
    if aliased_parameter(module, output) or aliased_output(module, parameter, index):
        raise HeronError("HLO024", f"output {output} or parameter {parameter} {index} is aliased already")
    found = Alias(tuple(output), parameter, tuple(index), kind)
    module.header["input_output_alias"] = (*module.header.get("input_output_alias", ()), tuple(found))
    remove_donor(module, parameter, index)
    return found


def remove_alias(module: Module, output: ShapeIndex) -> None:
    """Forget the alias of a part of the result, if there is one."""
    kept = tuple(a for a in module.header.get("input_output_alias", ()) if a[0] != output)
    _set(module, "input_output_alias", kept)


def add_donor(module: Module, parameter: int, index: ShapeIndex = ()) -> Donor:
    """Let the program overwrite a part of a parameter. Raises HLO024 when there is no such part or it is aliased."""
    _parameter_part(module, parameter, index)
    if aliased_output(module, parameter, index):
        raise HeronError("HLO024", f"parameter {parameter} {index} is aliased already")
    found = Donor(parameter, tuple(index))
    if found not in donors(module):
        module.header["buffer_donor"] = (*module.header.get("buffer_donor", ()), tuple(found))
    return found


def remove_donor(module: Module, parameter: int, index: ShapeIndex = ()) -> None:
    """Keep the program from overwriting a part of a parameter."""
    kept = tuple(d for d in module.header.get("buffer_donor", ()) if tuple(d) != (parameter, tuple(index)))
    _set(module, "buffer_donor", kept)


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
