"""scatter: updates go to the owner of their row; updates that are split are combined into partial results."""

from __future__ import annotations

from collections.abc import Sequence

from heron.analysis.sharding.aligned import aligned_in_scatter, batching
from heron.analysis.sharding.rules import rule_of
from heron.analysis.sharding.rules.reduction import reducer_of
from heron.analysis.values.splat import splat_value
from heron.hlo import facts
from heron.hlo.ir.instruction import Instruction, make
from heron.hlo.ir.types import PRED
from heron.hlo.sharding.atoms import Axes, TensorSharding
from heron.passes.sharding.partition import default
from heron.passes.sharding.partition.context import Partitioner
from heron.passes.sharding.partition.part import Part
from heron.passes.sharding.partition.registry import partitions
from heron.passes.sharding.partition.special import starts
from heron.passes.sharding.partition.special.aligned import without


@partitions("scatter", keeps_sums=True)
def scatter(p: Partitioner, i: Instruction, operands: list[Part]) -> list[Part]:
    """The scatter on parts.

    Batching dimensions and dimensions that every window has whole stay split. Of a split dimension in which a window
    has one element, every device sees all updates and drops those of other parts. Updates that are split along their
    batch dimensions give partial results, which the combiner makes one; one device alone begins with the operand.
    """
    count = len(operands) // 2
    at, operands = _by_batches(p, i, operands)
    choice = default.chosen(p, i, operands, rule=rule_of(at), moves=True)
    parts, results, axes = list(choice.operands), choice.results, tuple(sorted(choice.reduced))
    for d in _at_zero(at):
        parts[:count] = [p.reshard(x, x.sharding.with_dim(d, ())) for x in parts[:count]]
        results = [s.with_dim(d, ()) for s in results]
    arrays, indices, updates = parts[:count], parts[count], parts[count + 1 :]
    first, flags = _shifted(p, at, arrays[0], indices)
    if first is indices.value and _tail(p, at, indices):
        updates = [Part(_without_tail(p, at, u), u.shape, u.sharding) for u in updates]
    begin = [_begin(p, i, a, axes) for a in arrays]
    attrs = {**at.attrs, **flags, "to_apply": p.copied(i.to_apply)}
    made = p.add("scatter", [*begin, first, *(u.value for u in updates)], **attrs)
    values = [made] if count == 1 else [p.add("get-tuple-element", [made], index=n) for n in range(count)]
    return [_combined(p, i, v, a, s, axes) for v, a, s in zip(values, arrays, results, strict=True)]


def _by_batches(p: Partitioner, i: Instruction, operands: list[Part]) -> tuple[Instruction, list[Part]]:
    """The scatter with batching dimensions for indices that count, and its operands. It stands in no computation."""
    count = len(operands) // 2
    found = aligned_in_scatter(i)
    if not found:
        return i, operands
    given = without(p, operands[count], i.index_vector_dim, found)
    dims, starts_dims = batching(found, i.input_batching_dims, i.scatter_indices_batching_dims)
    gone = {a.dim for a in found}
    attrs = {
        **i.attrs,
        "scatter_dims_to_operand_dims": tuple(d for d in i.scatter_dims_to_operand_dims if d not in gone),
        "inserted_window_dims": tuple(d for d in i.inserted_window_dims if d not in gone),
        "input_batching_dims": dims,
        "scatter_indices_batching_dims": starts_dims,
        "indices_are_sorted": False,
    }
    operands = [*operands[:count], given, *operands[count + 1 :]]
    places = [make("parameter", (), o.shape, number=n) for n, o in enumerate(operands)]
    return make("scatter", places, i.shape, **attrs), operands


def _owned_dims(i: Instruction, x: Part) -> tuple[int, ...]:
    """Split dimensions of the operand, of which windows have one element, that indices are for."""
    return tuple(d for d in i.scatter_dims_to_operand_dims if x.sharding.dims[d] and _window(i, d) == 1 != x.dims[d])


def _at_zero(i: Instruction) -> tuple[int, ...]:
    """Dimensions of the operand of which every window has the first element alone."""
    return tuple(d for d in i.inserted_window_dims if d not in i.scatter_dims_to_operand_dims)


def _window(i: Instruction, d: int) -> int:
    """The size of a window along a dimension of the operand."""
    gone = {*i.inserted_window_dims, *i.input_batching_dims}
    if d in gone:
        return 1
    kept = [e for e in range(i.operands[0].shape.rank) if e not in gone]
    return i.operands[-1].shape.dims[i.update_window_dims[kept.index(d)]]


def _tail(p: Partitioner, i: Instruction, indices: Part) -> tuple[int, ...]:
    """Dimensions of the indices whose last parts have indices that are none, and no batching dimension gets them."""
    gone = {i.index_vector_dim, *i.scatter_indices_batching_dims}
    return tuple(d for d in range(len(indices.dims)) if d not in gone and p.is_uneven(indices, d))


def _shifted(p: Partitioner, i: Instruction, x: Part, indices: Part) -> tuple[Instruction, dict[str, bool]]:
    """Start indices in this device's part, and what is no longer known of them.

    An index of another part lies outside of this one, and so do those that are no indices: their windows are dropped.
    """
    owned, tail, length = _owned_dims(i, x), _tail(p, i, indices), len(i.scatter_dims_to_operand_dims)
    if not length or not (owned or tail):
        return indices.value, {}
    flags = {}
    first = starts.signed(p, indices.value)
    if tail:
        first = p.masked(Part(first, indices.shape.with_type(first.shape.element_type), indices.sharding), tail, -1)
        flags = {"indices_are_sorted": False, "unique_indices": False}
    if not owned:
        return first, flags
    columns = starts.components(p, first, i.index_vector_dim)
    for d in owned:
        k = i.scatter_dims_to_operand_dims.index(d)
        columns[k] = starts.minus(p, columns[k], p.offset(x, d))
    return starts.joined(p, columns, first, i.index_vector_dim), flags


def _without_tail(p: Partitioner, i: Instruction, updates: Part) -> Instruction:
    """Updates that change nothing where there are none. For windows whose place no index tells."""
    reducer = reducer_of(i.to_apply)
    batch = [d for d in range(len(updates.dims)) if d not in i.update_window_dims and p.is_uneven(updates, d)]
    return p.masked(updates, batch, facts.identity(reducer, updates.shape.element_type)) if reducer else updates.value


def _begin(p: Partitioner, i: Instruction, x: Part, axes: Axes) -> Instruction:
    """The array that updates are combined into: the operand on the first device along `axes`, else nothing."""
    if not axes:
        return x.value
    reducer, t = reducer_of(i.to_apply), x.shape.element_type
    assert reducer, "updates are split for a combiner alone"
    nothing = p.full(facts.identity(reducer, t), t, x.local_dims)
    if splat_value(x.value) == facts.identity(reducer, t):
        return x.value
    is_first = p.compare("EQ", p.index(axes), p.constant(0, p.index(axes).shape.element_type))
    return p.add("select", [p.full(is_first, PRED, x.local_dims), x.value, nothing])


def _combined(
    p: Partitioner, i: Instruction, value: Instruction, x: Part, result: TensorSharding, axes: Sequence[int]
) -> Part:
    sharding = TensorSharding.closed(result.dims, manual=result.manual)
    if not axes:
        return Part(value, x.shape, sharding)
    reducer = reducer_of(i.to_apply)
    if reducer == "add" and x.shape.element_type is not PRED:
        return Part(value, x.shape, TensorSharding.closed(result.dims, axes, result.manual))
    assert reducer
    return Part(p.all_reduce(value, axes, reducer), x.shape, sharding)
