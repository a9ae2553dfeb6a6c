"""Reductions: each device reduces its share, then the partial results are combined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from heron.analysis.sharding.rules import rule_of
from heron.hlo.facts import combiner, identity
from heron.hlo.ir.op import Trait, get
from heron.hlo.ir.shape import tuple_
from heron.hlo.ir.types import S32
from heron.hlo.sharding.atoms import Axes
from heron.passes.sharding.partition import default
from heron.passes.sharding.partition.part import Part
from heron.passes.sharding.partition.registry import partitions
from heron.passes.sharding.partition.special.neutral import starts_are_neutral

if TYPE_CHECKING:
    from heron.hlo.ir.instruction import Instruction
    from heron.passes.sharding.partition.context import Partitioner


@partitions("reduce", keeps_sums=True)
def reduce(p: Partitioner, i: Instruction, operands: list[Part]) -> list[Part]:
    """By one commutative op: the initial value counts once. By a computation: partial results are gathered."""
    opcode = combiner(i.to_apply)
    if len(operands) == 2 and opcode is not None and identity(opcode, operands[0].shape.element_type) is not None:
        return _by_op(p, i, operands)
    return _general(p, i, operands)


def _by_op(p: Partitioner, i: Instruction, operands: list[Part]) -> list[Part]:
    """A reduction by one commutative op: the initial value counts once."""
    rule, opcode = rule_of(i), combiner(i.to_apply)
    assert rule is not None and opcode is not None
    choice = default.chosen(p, i, operands)
    array, start = default.clean(p, rule, choice.operands)
    start = _counted_once(p, start, opcode, choice.reduced)
    return default.local(p, i, [array, start], choice.results, choice.reduced, choice.reducer)


def _counted_once(p: Partitioner, start: Part, opcode: str, axes: Axes) -> Part:
    """The initial value on the first of the devices whose results are combined, the neutral element on the others."""
    t = start.shape.element_type
    neutral = identity(opcode, t)
    if not axes or Trait.IDEMPOTENT in get(opcode).traits or _is_constant(start.value, neutral):
        return start
    first = p.compare("EQ", p.index(axes), p.constant(0, S32))
    value = p.add("select", [first, start.value, p.constant(neutral, t)], start.value.shape)
    return Part(value, start.shape, start.sharding)


def _is_constant(value: Instruction, number: Any) -> bool:
    return value.opcode == "constant" and bool(
        value.literal.array == np.asarray(number).astype(value.literal.array.dtype)
    )


def _general(p: Partitioner, i: Instruction, operands: list[Part]) -> list[Part]:
    """Partial results meet along a new dimension and are reduced again, where initial values are neutral."""
    choice = default.chosen(p, i, operands, moves=starts_are_neutral(i))
    count, axes = len(operands) // 2, choice.reduced
    arrays, starts = choice.operands[:count], choice.operands[count:]
    clean = [Part(p.masked(a, i.dimensions, s.value), a.shape, a.sharding) for a, s in zip(arrays, starts, strict=True)]
    found = default.local(p, i, [*clean, *starts], choice.results)
    if not axes:
        return found
    partial, initial = [part.value for part in found], [s.value for s in starts]
    if _is_less_shared_out(p, i, partial, axes):
        values = _shared_out(p, i, partial, initial, axes)
        return [Part(value, part.shape, s) for value, part, s in zip(values, found, choice.results, strict=True)]
    rows = [p.all_gather(p.reshape(value, (1, *value.shape.dims)), 0, axes) for value in partial]
    return p.leaves(_combined(p, i, rows, initial), i.shape, choice.results)


def _combined(p: Partitioner, i: Instruction, rows: list[Instruction], initial: list[Instruction]) -> Instruction:
    """Rows of partial results reduced to one."""
    shapes = [row.shape.with_dims(row.shape.dims[1:]) for row in rows]
    shape = shapes[0] if len(shapes) == 1 else tuple_(shapes)
    return p.add("reduce", [*rows, *initial], shape, dimensions=(0,), to_apply=p.copied(i.to_apply))


def _is_less_shared_out(p: Partitioner, i: Instruction, partial: list[Instruction], axes: Axes) -> bool:
    """Whether devices send less if each combines its own piece of the results, and those that are read are gathered.

    A gather sends every result to all n - 1 others. An exchange of pieces and a gather of pieces each send
    (n - 1) / n of a result.
    """
    n = p.mesh.size(axes)
    if partial[0].shape.num_elements % n:
        return False
    read = {user.index if user.opcode == "get-tuple-element" else -1 for user in i.users}
    results = [v.shape.byte_size for v in partial]
    known = i.shape.is_tuple and not i.is_root and -1 not in read
    gathered = [size for k, size in enumerate(results) if not known or k in read]
    return sum(results) + sum(gathered) < n * sum(results)


def _shared_out(
    p: Partitioner, i: Instruction, partial: list[Instruction], initial: list[Instruction], axes: Axes
) -> list[Instruction]:
    """The results of all devices along `axes`, of which each combines a piece."""
    n = p.mesh.size(axes)
    rows = []
    for value in partial:
        flat = p.reshape(value, (value.shape.num_elements,))
        rows.append(p.reshape(p.all_to_all(flat, 0, 0, axes), (n, value.shape.num_elements // n)))
    made = _combined(p, i, rows, initial)
    pieces = [made] if len(rows) == 1 else [p.add("get-tuple-element", [made], index=k) for k in range(len(rows))]
    wholes = [p.all_gather(piece, 0, axes) for piece in pieces]
    return [p.reshape(whole, value.shape.dims) for whole, value in zip(wholes, partial, strict=True)]
