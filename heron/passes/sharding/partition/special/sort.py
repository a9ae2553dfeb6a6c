"""sort: other dimensions take the atoms of rows; a single long row is sorted by a network of devices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from heron.hlo.ir import literal as literals
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import PRED_SCALAR, Shape, tuple_
from heron.hlo.ir.types import PRED, S32, S64
from heron.hlo.sharding.atoms import Axes, TensorSharding
from heron.passes.expand.stable_sort_expander import counts_along, tells_all_apart, with_tie_break
from heron.passes.sharding.partition.context import Partitioner
from heron.passes.sharding.partition.part import Part
from heron.passes.sharding.partition.registry import partitions
from heron.passes.sharding.partition.special.computed import computed_in


@partitions("sort")
def sort(p: Partitioner, i: Instruction, operands: list[Part]) -> list[Part] | None:
    """Other dimensions take the atoms of the sorted one where they have room: that is the default.

    Else, where the result is wanted in parts and it moves less than a gather, devices sort their parts and then merge
    them pair by pair in the order of a sorting network.
    """
    (d,) = i.dimensions
    if not any(o.sharding.dims[d] for o in operands):
        return None
    planned = computed_in(p, i, operands).operands[0]
    target = p.wanted(i, (0,) if i.shape.is_tuple else ())
    lost = set(target.dims[d]) - planned.used
    if not lost or target.unreduced or not _pays(p, i, operands, target):
        return None
    return _by_network(p, i, [p.reshard(o, target) for o in operands])


def _pays(p: Partitioner, i: Instruction, operands: list[Part], target: TensorSharding) -> bool:
    """Whether merging moves fewer bytes than a gather of the rows does."""
    count = p.mesh.size(target.dims[i.dimensions[0]])
    if operands[0].dims[i.dimensions[0]] < count:
        return False
    element = sum(o.shape.element_type.bits for o in operands)
    exchanged = element + 32 * (_tie_breaker(p, i, operands, target) == len(operands))
    merged = len(list(network(count))) * exchanged
    pays = merged < (count - 1) * element
    p.decide(
        pays, f"sort by a network of {count} devices", cost_before=(count - 1) * element / 8, cost_after=merged / 8
    )
    return pays


def _tie_breaker(p: Partitioner, i: Instruction, operands: Sequence[Part], target: TensorSharding) -> int | None:
    """The number of the operand that decides between equals: one that counts along the row, or positions behind all.

    None where equals need not be told apart. In uneven parts positions also tell what lies beyond the end.
    """
    (d,) = i.dimensions
    if operands[0].dims[d] % p.mesh.size(target.dims[d]):
        return len(operands)
    if tells_all_apart(i) or (len(operands) == 1 and not i.is_stable):
        return None
    return next((n for n, o in enumerate(i.operands) if counts_along(o, d)), len(operands))


def network(count: int) -> Iterator[list[tuple[int, int]]]:
    """The stages of Batcher's merge exchange for any number of lines: pairs (a, b) whose smaller one goes to a.

    Source: Knuth, The Art of Computer Programming 3, 5.2.2, algorithm M.
    """
    top = 1 << (count - 1).bit_length() >> 1
    size = top
    while size:
        step, low, distance = top, 0, size
        while True:
            yield [(n, n + distance) for n in range(count - distance) if n & size == low]
            if step == size:
                break
            distance, step, low = step - size, step // 2, size
        size //= 2


# -- the network -----------------------------------------------------------------------------------------------------
def _by_network(p: Partitioner, i: Instruction, parts: list[Part]) -> list[Part]:
    """Every device sorts its part; then pairs of devices keep the smaller and the larger half of their parts."""
    (d,) = i.dimensions
    axes: Axes = parts[0].sharding.dims[d]
    count, own = p.mesh.size(axes), parts[0].local_dims[d]
    values = [o.value for o in parts]
    comparator = p.copied(i.to_apply)
    breaker = _tie_breaker(p, i, parts, parts[0].sharding)
    if breaker == len(values):
        values.append(_positions(p, parts[0], d))
    if breaker is not None:
        comparator = p.module.add_computation(with_tie_break(comparator, breaker, values[breaker]))
    if breaker is not None and p.is_uneven(parts[0], d):
        _put_last(comparator, breaker, parts[0].dims[d])
    values = _sorted(p, values, d, comparator)
    for stage in network(count):
        values = _merged(p, values, d, axes, dict(stage), own, count, comparator)
    return [Part(v, o.shape, o.sharding) for v, o in zip(values, parts, strict=False)]


def _positions(p: Partitioner, part: Part, d: int) -> Instruction:
    """The place of every element along `d` in the whole array."""
    t = S64 if part.dims[d] + part.local_dims[d] >= 1 << 31 else S32
    own = p.iota(part.local_dims, d, t)
    return p.add("add", [own, p.full(p.convert(p.offset(part, d), t), t, part.local_dims)])


def _put_last(comparator: Computation, operand: int, size: int) -> None:
    """Let the comparator put what an operand of positions says to lie beyond the end behind all else."""
    a, b = comparator.parameters[2 * operand : 2 * operand + 2]
    end = comparator.add("constant", (), a.shape, literal=literals.scalar(a.shape.element_type, size - 1))
    is_real = comparator.add("compare", [comparator.add("maximum", [a, b]), end], PRED_SCALAR, direction="LE")
    first = comparator.add("compare", [a, b], PRED_SCALAR, direction="LT")
    comparator.root = comparator.add("select", [is_real, comparator.root, first], PRED_SCALAR)


def _sorted(p: Partitioner, values: list[Instruction], d: int, comparator: Computation) -> list[Instruction]:
    shapes = [v.shape for v in values]
    result: Shape = shapes[0] if len(shapes) == 1 else tuple_(shapes)
    made = p.add("sort", values, result, dimensions=(d,), is_stable=False, to_apply=comparator)
    if len(values) == 1:
        return [made]
    return [p.add("get-tuple-element", [made], s, index=n) for n, s in enumerate(shapes)]


def _merged(
    p: Partitioner,
    values: list[Instruction],
    d: int,
    axes: Axes,
    stage: dict[int, int],
    own: int,
    count: int,
    comparator: Computation,
) -> list[Instruction]:
    """One stage: pairs exchange their parts, and each keeps its half of both."""
    partner = stage | {b: a for a, b in stage.items()}
    received = [p.permute(v, axes, partner.get) for v in values]
    both = [p.concatenate([v, r], d) for v, r in zip(values, received, strict=True)]
    both = _sorted(p, both, d, comparator)
    start = _looked_up(p, axes, [own if n in stage.values() else 0 for n in range(count)])
    halves = [p.dynamic_slice(b, {d: start}, v.shape.dims) for b, v in zip(both, values, strict=True)]
    if len(partner) == count:
        return halves
    is_paired = _looked_up(p, axes, [int(n in partner) for n in range(count)])
    chosen = p.compare("NE", is_paired, p.constant(0, S32))
    return [p.add("select", [p.full(chosen, PRED, h.shape.dims), h, v]) for h, v in zip(halves, values, strict=True)]


def _looked_up(p: Partitioner, axes: Axes, table: Sequence[int]) -> Instruction:
    """The entry of a table that belongs to this device's number along `axes`; s32[]."""
    if len(set(table)) == 1:
        return p.constant(table[0], S32)
    row = p.dynamic_slice(p.constant(np.array(table), S32), {0: p.index(axes)}, (1,))
    return p.reshape(row, ())
