"""Reductions: each device reduces its share, then the partial results are combined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from heron.analysis.sharding.rules import rule_of
from heron.hlo.facts import combiner, identity, is_order_free
from heron.hlo.ir.shape import tuple_
from heron.hlo.ir.types import S32
from heron.hlo.sharding.atoms import TensorSharding
from heron.passes.sharding.partition import default
from heron.passes.sharding.partition.part import Part
from heron.passes.sharding.partition.registry import partitions

if TYPE_CHECKING:
    from heron.hlo.ir.instruction import Instruction
    from heron.passes.sharding.partition.context import Partitioner


@partitions("reduce")
def reduce(p: Partitioner, i: Instruction, operands: list[Part]) -> list[Part]:
    """By one commutative op: the initial value counts once. By a computation: partial results are gathered."""
    rule = rule_of(i)
    assert rule is not None
    taken, results, reduced = default.chosen(p, i, rule, operands)
    count = len(taken) // 2
    arrays, starts = taken[:count], [p.whole(s) for s in taken[count:]]
    opcode = combiner(i.to_apply)
    neutral = None if opcode is None or count > 1 else identity(opcode, i.shape.element_type)
    if neutral is None:
        return _general(p, i, arrays, starts, results, reduced)
    clean = Part(p.masked(arrays[0], i.dimensions, neutral), arrays[0].shape, arrays[0].sharding)
    start = _counted_once(p, starts[0], opcode, neutral, reduced)
    sums = reduced if opcode == "add" else ()
    found = default.local(p, i, [clean, start], results, sums)
    if not reduced or sums or opcode is None:
        return found
    return [Part(p.all_reduce(found[0].value, reduced, opcode), i.shape, results[0])]


def _counted_once(p: Partitioner, start: Part, opcode: str | None, neutral: Any, axes: Sequence[int]) -> Part:
    """The initial value on the first of the devices whose results are combined, the neutral element on the others."""
    t = start.shape.element_type
    if not axes or opcode is None or is_order_free(opcode) and opcode != "xor" or _is_constant(start.value, neutral):
        return start
    first = p.compare("EQ", p.index(axes), p.constant(0, S32))
    value = p.add("select", [first, start.value, p.constant(neutral, t)], start.value.shape)
    return Part(value, start.shape, start.sharding)


def _is_constant(value: Instruction, number: Any) -> bool:
    return value.opcode == "constant" and bool(
        value.literal.array == np.asarray(number).astype(value.literal.array.dtype)
    )


def _general(
    p: Partitioner,
    i: Instruction,
    arrays: Sequence[Part],
    starts: Sequence[Part],
    results: list[TensorSharding],
    axes: Sequence[int],
) -> list[Part]:
    """Partial results are gathered along a new dimension and reduced again. Initial values must be neutral."""
    clean = [Part(p.masked(a, i.dimensions, s.value), a.shape, a.sharding) for a, s in zip(arrays, starts, strict=True)]
    found = default.local(p, i, [*clean, *starts], results, ())
    if not axes:
        return found
    values: list[Instruction] = []
    for part in found:
        row = p.reshape(part.value, (1, *part.local_dims))
        values.append(p.all_gather(row, 0, axes))
    shape = found[0].value.shape if len(found) == 1 else tuple_([part.value.shape for part in found])
    operands = [*values, *(s.value for s in starts)]
    again = p.add("reduce", operands, shape, dimensions=(0,), to_apply=p.copied(i.to_apply))
    return p.leaves(again, i.shape, results)
