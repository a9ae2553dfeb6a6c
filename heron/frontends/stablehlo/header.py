"""The header of an HLO module, from the attributes of a StableHLO module and its main function."""

from __future__ import annotations

from typing import Any

from heron.errors import HeronError
from heron.frontends.stablehlo.carried import extras
from heron.frontends.stablehlo.syntax import Function, Program
from heron.hlo.ir import layout as layouts
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import Shape, tuple_
from heron.hlo.text.shapes import parse_array

_COUNTS = (("mhlo.num_replicas", "replica_count"), ("mhlo.num_partitions", "num_partitions"))
#: memory kinds that live in the host's memory, and XLA's number for it
_ON_HOST = frozenset({"pinned_host", "unpinned_host"})
_HOST_MEMORY = 5
#: the layout JAX writes for scalars; HLO text has none for them
_NO_ORDER = "{}"
#: the layout of an array whose order the compiler chooses
_ANY_ORDER = "auto"


def set_header(module: Module, program: Program, main: Function) -> None:
    """Device counts, aliases and donors, frontend attributes and meshes, and layouts callers ask for.

    Raises SHLO006 for an alias with a result that does not exist, and for a layout that is none of the type.
    """
    header, attrs = module.header, program.attrs
    for name, field in _COUNTS:
        count = attrs.get(name)
        if isinstance(count, int) and count != 1:
            header[field] = count
    _set_donations(header, program, main)
    frontend = attrs.get("mhlo.frontend_attributes")
    carried = extras({"mhlo.frontend_attributes": frontend}).get("frontend_attributes", {})
    if program.meshes:
        carried["xla.sdy.meshes"] = meshes_text(program)
    if carried:
        header["frontend_attributes"] = carried
    _set_layouts(module, program, main)


def meshes_text(program: Program) -> str:
    """The meshes of a program in one attribute."""
    return "{" + ", ".join(f"{name} = #sdy.mesh{mesh}" for name, mesh in program.meshes.items()) + "}"


def _set_donations(header: dict[str, Any], program: Program, main: Function) -> None:
    single = len(main.results) == 1
    aliases, donors = [], []
    for n, argument in enumerate(main.arguments):
        output = argument.attrs.get("tf.aliasing_output")
        if isinstance(output, int) and not isinstance(output, bool):
            if not 0 <= output < len(main.results):
                what = f"argument {n} is aliased to result {output}, which does not exist"
                program.source.fail("SHLO006", what, main.at)
            aliases.append((() if single else (output,), n, (), "may-alias"))
        elif argument.attrs.get("jax.buffer_donor") is True:
            donors.append((n, ()))
    if aliases:
        header["input_output_alias"] = tuple(sorted(aliases))
    if donors:
        header["buffer_donor"] = tuple(donors)


def _set_layouts(module: Module, program: Program, main: Function) -> None:
    """The entry's layouts, if any argument or result asks for one or for memory of the host."""
    arguments = [(a.type, a.attrs) for a in main.arguments]
    if not any(_asks(attrs) for _, attrs in (*arguments, *main.results)):
        return
    given = [_as_asked(program, main, *one) for one in arguments]
    gives = [_as_asked(program, main, *one, is_result=True) for one in main.results]
    module.entry_layout = tuple(given), gives[0] if len(gives) == 1 else tuple_(gives)


def _asks(attrs: dict[str, Any]) -> bool:
    return attrs.get("mhlo.layout_mode", "default") != "default" or _is_on_host(attrs)


def _is_on_host(attrs: dict[str, Any]) -> bool:
    return attrs.get("mhlo.memory_kind") in _ON_HOST


def _as_asked(program: Program, main: Function, shape: Shape, attrs: dict[str, Any], is_result: bool = False) -> Shape:
    """The shape as the program asks for it. Results without an order get none; arguments lie as they mostly do."""
    if not shape.is_array or not _asks(attrs):
        return shape
    mode = attrs.get("mhlo.layout_mode", "default")
    if mode == _ANY_ORDER and is_result and not _is_on_host(attrs):
        return shape.with_layout(None)
    if mode not in ("default", _ANY_ORDER):
        try:
            shape = parse_array(f"{shape.bare}{mode}" if shape.rank or mode != _NO_ORDER else f"{shape.bare}")
        except HeronError as error:
            program.source.fail("SHLO006", f"'{mode!s:.40}' is not a layout of {shape.bare}", main.at, why=error.what)
    if not _is_on_host(attrs):
        return shape
    own = shape.layout or layouts.default(shape.rank)
    return shape.with_layout(layouts.layout(own.minor_to_major, own.tiles, own.element_size, _HOST_MEMORY))
