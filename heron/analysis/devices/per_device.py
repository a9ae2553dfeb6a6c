"""Scalars that depend on the number of the device alone, computed for all devices at once.

Offsets of parts are such scalars: a table looked up by ``partition-id``, or arithmetic on it. Passes compare them with
the place of a device in its group, however the program spells them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from heron.evaluator import Evaluator
from heron.hlo.facts import is_device_id, reindexes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module

#: longer expressions are left alone
_DEPTH = 32


def per_device(i: Instruction, module: Module) -> np.ndarray | None:
    """The integer value of a scalar on each device [devices]; None where it depends on anything else."""
    partitions = module.num_partitions
    numbers = np.arange(module.replica_count * partitions)

    def number(i: Instruction) -> np.ndarray | None:
        if not is_device_id(i):
            return None
        ids = numbers % partitions if i.opcode == "partition-id" else numbers // partitions
        return ids.astype(np.uint32)

    return integers(i, number, len(numbers))


def integers(i: Instruction, known: Callable[[Instruction], np.ndarray | None], count: int) -> np.ndarray | None:
    """The integer value of a scalar in `count` cases, by what `known` gives for others; None where it is not enough."""
    found = _values(i, known, count, _DEPTH)
    return None if found is None else np.broadcast_to(found, (count,))


def _values(
    i: Instruction, known: Callable[[Instruction], np.ndarray | None], count: int, depth: int
) -> np.ndarray | None:
    shape = i.shape
    if not shape.is_array or shape.num_elements != 1 or not depth:
        return None
    if not (shape.element_type.is_integer or shape.element_type.name == "pred"):
        return None
    given = known(i)
    if given is not None:
        return given
    if i.opcode == "constant":
        return i.literal.array.reshape(())
    if reindexes(i) and len(i.operands) == 1:  # one element stays what it is
        return _values(i.operands[0], known, count, depth - 1)
    if i.opcode == "dynamic-slice":
        return _looked_up(i, known, count, depth - 1)
    if not i.op.is_elementwise:
        return None
    operands: list[np.ndarray] = []
    for o in i.operands:
        value = _values(o, known, count, depth - 1)
        if value is None:
            return None
        operands.append(np.broadcast_to(value, (count,)))
    return np.asarray(i.op.evaluate(Evaluator(None), i, *operands))


def _looked_up(
    i: Instruction, known: Callable[[Instruction], np.ndarray | None], count: int, depth: int
) -> np.ndarray | None:
    """One element of a constant list or an iota, at a place that differs between the cases."""
    table, *starts = i.operands
    if table.shape.rank != 1 or len(starts) != 1:
        return None
    if table.opcode == "constant":
        values = table.literal.array
    elif table.opcode == "iota":
        values = np.arange(table.shape.dims[0]).astype(table.shape.element_type.dtype)
    else:
        return None
    at = _values(starts[0], known, count, depth)
    if at is None:
        return None
    places = np.clip(np.broadcast_to(at, (count,)).astype(np.int64), 0, len(values) - 1)
    return values[places]
