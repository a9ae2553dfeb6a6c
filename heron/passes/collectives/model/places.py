"""The place of the running device in its group, as a scalar of the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from heron.analysis.devices.groups import device_groups
from heron.analysis.devices.own_part import places_in_groups
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.literal import Literal
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import row_major, scalar
from heron.hlo.ir.types import S32, U32, ElementType
from heron.passes.rewriting.building import constant, convert
from heron.passes.rewriting.building import scalar as scalar_constant


def group_size(i: Instruction, module: Module) -> int | None:
    """The number of devices in each group of a collective; None where groups differ or leave devices out."""
    groups = device_groups(i, module)
    sizes = {len(g) for g in groups}
    covered = sum(map(len, groups)) == module.replica_count * module.num_partitions
    return sizes.pop() if len(sizes) == 1 and covered else None


def place_in_group(i: Instruction, module: Module) -> Instruction:
    """The place of this device in its group of collective `i`: s32[], a table looked up by the device's number."""
    c = i.parent
    assert c is not None
    places = places_in_groups(device_groups(i, module), module.replica_count * module.num_partitions)
    assert places is not None
    return looked_up(c, device_number(c, module), places, S32)


def looked_up(
    c: Computation, number: Instruction, values: Sequence[Any] | np.ndarray, element_type: ElementType
) -> Instruction:
    """The one of `values` at a place that differs between devices, as a scalar of that type."""
    table = constant(c, Literal(row_major(element_type, len(values)), np.array(values).astype(element_type.dtype)))
    one = c.add("dynamic-slice", [table, number], None, dynamic_slice_sizes=(1,))
    return c.add("reshape", [one], scalar(element_type))


def device_number(c: Computation, module: Module) -> Instruction:
    """replica · partitions + partition, as u32[] or s32[]."""
    if module.replica_count == 1:
        return convert(c.add("partition-id", [], scalar(U32)), S32)
    replica = convert(c.add("replica-id", [], scalar(U32)), S32)
    if module.num_partitions == 1:
        return replica
    first = c.add("multiply", [replica, scalar_constant(c, S32, module.num_partitions)], scalar(S32))
    return c.add("add", [first, convert(c.add("partition-id", [], scalar(U32)), S32)], scalar(S32))


def starts_at(i: Instruction, dim: int, at: Instruction, rank: int) -> list[Instruction]:
    """Start indices of a dynamic slice: `at` along `dim`, else zero."""
    assert i.parent is not None
    zero = scalar_constant(i.parent, S32, 0)
    return [at if d == dim else zero for d in range(rank)]
