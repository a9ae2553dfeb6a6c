"""topk: of a split row every device takes its own first elements, and all take the first of those."""

from __future__ import annotations

import numpy as np

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import row_major, tuple_
from heron.hlo.ir.types import S32, ElementType
from heron.hlo.sharding.atoms import TensorSharding
from heron.passes.sharding.partition.context import Partitioner
from heron.passes.sharding.partition.part import Part
from heron.passes.sharding.partition.registry import partitions
from heron.passes.sharding.partition.special.computed import computed_in


@partitions("topk")
def topk(p: Partitioner, i: Instruction, operands: list[Part]) -> list[Part] | None:
    """Other dimensions take the atoms of the row, or it is gathered, where that moves less: that is the default."""
    return first_of(p, i, operands[0], i.k, i.largest)


def first_of(p: Partitioner, i: Instruction, x: Part, k: int, largest: bool) -> list[Part] | None:
    """The `k` first elements of the last dimension and their positions, in two rounds; None where that does not pay."""
    row = x.shape.rank - 1
    axes = x.sharding.dims[row]
    if not axes or not x.dims[row] or not k:
        return None
    planned = computed_in(p, i, [x]).operands[0]
    count, t = p.mesh.size(axes), x.shape.element_type
    mine = min(k, x.local_dims[row])
    rows = np.prod(x.local_dims[:row], dtype=np.int64)
    exchanged = float(rows * mine * (count - 1) * (t.bits + 32) / 8)
    other = p.cost(x.shape, x.sharding, planned)
    first = f"exchange the first {mine} of each of {count} parts alone"
    p.decide(exchanged <= other, first, cost_before=other, cost_after=exchanged)
    if exchanged > other:
        return None
    own = p.masked(x, [row], _last(p, t, largest))
    values, places = _round(p, own, mine, largest)
    offset = p.full(p.convert(p.offset(x, row), S32), S32, places.shape.dims)
    places = p.add("add", [places, offset])
    values, places = (p.all_gather(v, row, axes) for v in (values, places))
    values, chosen = _round(p, values, k, largest)
    sharding = TensorSharding.closed((*x.sharding.dims[:row], ()), manual=x.sharding.manual)
    whole = [row_major(e, *x.dims[:row], k) for e in (t, S32)]
    return [Part(values, whole[0], sharding), Part(_picked(p, places, chosen), whole[1], sharding)]


def _round(p: Partitioner, x: Instruction, k: int, largest: bool) -> tuple[Instruction, Instruction]:
    dims = (*x.shape.dims[:-1], k)
    shapes = [row_major(t, *dims) for t in (x.shape.element_type, S32)]
    both = p.add("topk", [x], tuple_(shapes), k=k, largest=largest)
    values, places = (p.add("get-tuple-element", [both], s, index=n) for n, s in enumerate(shapes))
    return values, places


def _last(p: Partitioner, t: ElementType, largest: bool) -> Instruction:
    """The value that comes last in the order: among equal ones, those beyond the end of the array have later places."""
    if t.is_integer:
        low, high = (-(1 << (t.bits - 1)), (1 << (t.bits - 1)) - 1) if t.is_signed else (0, (1 << t.bits) - 1)
        return p.constant(low if largest else high, t)
    bits = np.full((), (1 << t.bits) - 1 if largest else (1 << (t.bits - 1)) - 1, f"u{t.bits // 8}")
    return p.constant(bits.view(t.dtype), t)


def _picked(p: Partitioner, places: Instruction, chosen: Instruction) -> Instruction:
    """For every row the places of the chosen elements."""
    rank = places.shape.rank
    rows = tuple(range(rank - 1))
    return p.add(
        "gather",
        [places, p.reshape(chosen, (*chosen.shape.dims, 1))],
        offset_dims=(),
        collapsed_slice_dims=(rank - 1,),
        start_index_map=(rank - 1,),
        operand_batching_dims=rows,
        start_indices_batching_dims=rows,
        index_vector_dim=rank,
        slice_sizes=(1,) * rank,
        indices_are_sorted=False,
    )
