"""Dynamic slices that take each device's own part of an array: part n on the n-th device of a group."""

from __future__ import annotations

import numpy as np

from heron.analysis.devices.per_device import per_device
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.replica_groups import Groups


def sliced_dimension(i: Instruction) -> int | None:
    """The one dimension in which a dynamic-slice takes less than everything; None where there are more, or none."""
    x = i.operands[0].shape
    found = [d for d, (a, b) in enumerate(zip(x.dims, i.shape.dims, strict=True)) if a != b]
    return found[0] if len(found) == 1 else None


def slice_starts(i: Instruction, dim: int, module: Module) -> np.ndarray | None:
    """The start of a dynamic-slice along a dimension on each device [devices], clamped as the op does.

    None where it depends on more than the number of the device.
    """
    starts = i.operands[1:]
    if len(starts) != i.shape.rank:  # one vector of starts
        return None
    found = per_device(starts[dim], module)
    if found is None:
        return None
    return np.clip(found.astype(np.int64), 0, i.operands[0].shape.dims[dim] - i.shape.dims[dim])


def places_in_groups(groups: Groups, count: int) -> np.ndarray | None:
    """The place of each device in its group [devices]; None where a device is in no group."""
    places = np.full(count, -1, np.int64)
    for group in groups:
        places[list(group)] = np.arange(len(group))
    return None if (places < 0).any() else places


def parts_taken(i: Instruction, dim: int, module: Module) -> np.ndarray | None:
    """The number of the part that each device takes along `dim`, counted in slices [devices]; None for what lies
    across two parts."""
    starts, length = slice_starts(i, dim, module), i.shape.dims[dim]
    if starts is None or not length or (starts % length).any():
        return None
    return starts // length


def takes_own_part(i: Instruction, dim: int, groups: Groups, module: Module) -> bool:
    """Whether the device at place n of its group takes part n, counted in slices, along `dim`."""
    parts = parts_taken(i, dim, module)
    places = places_in_groups(groups, module.replica_count * module.num_partitions)
    return parts is not None and places is not None and bool((parts == places).all())
