"""gather: rows of a split operand are read by their owner, all other dimensions as they are split."""

from __future__ import annotations

from heron.analysis.sharding.aligned import aligned_in_gather, batching
from heron.analysis.sharding.rules import rule_of
from heron.hlo import facts
from heron.hlo.ir.instruction import Instruction, make
from heron.hlo.ir.types import PRED, S32
from heron.hlo.sharding.atoms import Axes, TensorSharding
from heron.passes.sharding.partition import default
from heron.passes.sharding.partition.context import Partitioner
from heron.passes.sharding.partition.part import Part
from heron.passes.sharding.partition.registry import partitions
from heron.passes.sharding.partition.special import starts
from heron.passes.sharding.partition.special.aligned import without


@partitions("gather", keeps_sums=True)
def gather(p: Partitioner, i: Instruction, operands: list[Part]) -> Part:
    """The gather on parts.

    Batch dimensions of the indices, batching dimensions, and dimensions that every slice has whole stay split. A
    dimension of which a slice has one element may be split as well: its owner reads the element, all others give
    zeros, and the result is their sum.
    """
    at, operands = _by_batches(p, i, operands)
    choice = default.chosen(p, i, operands, rule=rule_of(at), moves=True)
    x, indices = choice.operands
    owned = owned_dims(at, x)
    first, is_mine = _shifted(p, at, x, indices.value, owned)
    sizes = tuple(
        x.local_dims[d] if size == x.dims[d] and x.sharding.dims[d] else size for d, size in enumerate(at.slice_sizes)
    )
    is_sorted = at.indices_are_sorted and not any(p.is_uneven(indices, d) for d in range(indices.shape.rank))
    attrs = {**at.attrs, "slice_sizes": sizes, "indices_are_sorted": is_sorted}
    value = p.add("gather", [x.value, first], **attrs)
    if is_mine is not None:
        value = _kept(p, i, value, is_mine)
    summed = (*(a for d in owned for a in x.sharding.dims[d]), *x.sharding.unreduced)
    return _summed(p, i, value, choice.results[0], summed)


def _by_batches(p: Partitioner, i: Instruction, operands: list[Part]) -> tuple[Instruction, list[Part]]:
    """The gather with batching dimensions for indices that count, and its operands. It stands in no computation."""
    found = aligned_in_gather(i)
    if not found:
        return i, operands
    given = without(p, operands[1], i.index_vector_dim, found)
    dims, starts_dims = batching(found, i.operand_batching_dims, i.start_indices_batching_dims)
    gone = {a.dim for a in found}
    attrs = {
        **i.attrs,
        "start_index_map": tuple(d for d in i.start_index_map if d not in gone),
        "collapsed_slice_dims": tuple(d for d in i.collapsed_slice_dims if d not in gone),
        "operand_batching_dims": dims,
        "start_indices_batching_dims": starts_dims,
        "indices_are_sorted": False,
    }
    places = [make("parameter", (), s, number=n) for n, s in enumerate((operands[0].shape, given.shape))]
    return make("gather", places, i.shape, **attrs), [operands[0], given]


def owned_dims(i: Instruction, x: Part) -> tuple[int, ...]:
    """Split dimensions of the operand of which a slice has one element."""
    return tuple(
        d
        for d, size in enumerate(i.slice_sizes)
        if x.sharding.dims[d] and size == 1 != x.dims[d] and d not in i.operand_batching_dims
    )


def _shifted(
    p: Partitioner, i: Instruction, x: Part, first: Instruction, owned: tuple[int, ...]
) -> tuple[Instruction, Instruction | None]:
    """Start indices in this device's part, and for each of them whether the slice is there; None where all are."""
    if not owned:
        return first, None
    first = starts.signed(p, first)
    parts = starts.components(p, first, i.index_vector_dim)
    t = first.shape.element_type
    is_mine: list[Instruction] = []
    for d in owned:
        offset = p.offset(x, d)
        if d not in i.start_index_map:  # every slice begins at 0
            is_mine.append(p.full(p.compare("EQ", p.convert(offset, S32), p.constant(0, S32)), PRED, _batch(i, first)))
            continue
        k = i.start_index_map.index(d)
        clamped = p.add("clamp", [p.constant(0, t), parts[k], p.constant(x.dims[d] - 1, t)])
        parts[k] = starts.minus(p, clamped, offset)
        is_mine.append(p.compare("GE", parts[k], p.constant(0, t)))
        is_mine.append(p.compare("LT", parts[k], p.constant(x.local_dims[d], t)))
    both = is_mine[0]
    for more in is_mine[1:]:
        both = p.add("and", [both, more])
    return starts.joined(p, parts, first, i.index_vector_dim), both


def _batch(i: Instruction, first: Instruction) -> tuple[int, ...]:
    dims = first.shape.dims
    return tuple(n for d, n in enumerate(dims) if d != i.index_vector_dim)


def _kept(p: Partitioner, i: Instruction, value: Instruction, is_mine: Instruction) -> Instruction:
    """`value` where the slice is this device's, elsewhere what adds nothing."""
    t = value.shape.element_type
    batch = tuple(d for d in range(value.shape.rank) if d not in i.offset_dims)
    shape = value.shape.with_type(PRED)
    mask = p.add("broadcast", [is_mine], shape, dimensions=batch)
    return p.add("select", [mask, value, p.full(facts.identity(_adder(i), t), t, value.shape.dims)])


def _adder(i: Instruction) -> str:
    """The op that adds up values of which all but one are nothing."""
    return "or" if i.shape.element_type is PRED else "add"


def _summed(p: Partitioner, i: Instruction, value: Instruction, result: TensorSharding, axes: Axes) -> Part:
    if _adder(i) == "add":
        return Part(value, i.shape, TensorSharding.closed(result.dims, axes, result.manual))
    value = p.all_reduce(value, tuple(sorted(axes)), _adder(i))
    return Part(value, i.shape, TensorSharding.closed(result.dims, manual=result.manual))
