"""Donated arguments: which entry parameters a program may overwrite, and which outputs take their place."""

from __future__ import annotations

from heron.hlo.module import Module
from heron.hlo.shape import ShapeIndex


def output_aliases(module: Module) -> list[tuple[ShapeIndex, int, ShapeIndex]]:
    """(output index, parameter number, parameter index) of the header's input_output_alias."""
    return [(tuple(entry[0]), entry[1], tuple(entry[2])) for entry in module.header.get("input_output_alias") or ()]


def donated_parameters(module: Module) -> frozenset[tuple[int, ShapeIndex]]:
    """(parameter number, index) of every buffer the caller gives up: aliased to an output, or a buffer_donor."""
    aliased = {(number, index) for _, number, index in output_aliases(module)}
    donors = {(entry[0], tuple(entry[1])) for entry in module.header.get("buffer_donor") or ()}
    return frozenset(aliased | donors)
