"""Donated arguments: which entry parameters a program may overwrite, and which outputs take their place."""

from __future__ import annotations

from heron.hlo.ir.aliasing import Alias
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import ShapeIndex


def output_aliases(module: Module) -> list[tuple[ShapeIndex, int, ShapeIndex]]:
    """(output index, parameter number, parameter index) of the header's input_output_alias."""
    return [(tuple(entry[0]), entry[1], tuple(entry[2])) for entry in module.header.get("input_output_alias") or ()]


def donated_parameters(module: Module) -> frozenset[tuple[int, ShapeIndex]]:
    """(parameter number, index) of every buffer the caller gives up: aliased to an output, or a buffer_donor."""
    aliased = {(number, index) for _, number, index in output_aliases(module)}
    donors = {(entry[0], tuple(entry[1])) for entry in module.header.get("buffer_donor") or ()}
    return frozenset(aliased | donors)


def possible_donations(module: Module) -> list[Alias]:
    """Pairs of parameters and outputs for further donations: in order, by equal shape, as ``jax.jit(…,
    donate_argnums)`` pairs them."""
    taken = donated_parameters(module)
    given = {index for index, _, _ in output_aliases(module)}
    free = [
        (p.attrs["number"], index, shape)
        for p in module.entry.parameters
        for index, shape in p.shape.leaves()
        if shape.is_array and shape.byte_size and (p.attrs["number"], index) not in taken
    ]
    found = []
    for output, shape in module.entry.root.shape.leaves():
        at = next((n for n, (_, _, s) in enumerate(free) if s == shape and output not in given), None)
        if at is not None:
            number, index, _ = free.pop(at)
            found.append(Alias(output, number, index))
    return found
