"""gather and scatter: windows of an array at indices."""

from __future__ import annotations

from collections.abc import Sequence

from heron.analysis.sharding.aligned import aligned_in_gather, aligned_in_scatter, batching
from heron.analysis.sharding.rule import FactorKind, OpRule
from heron.analysis.sharding.rules.builder import RuleBuilder
from heron.analysis.sharding.rules.reduction import reducer_of
from heron.analysis.sharding.rules.registry import rule
from heron.hlo.ir.instruction import Instruction
from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class _Dims:
    """The dimension numbers that a gather and a scatter have alike.

    `window`: dimensions of the windows in the slices (gather's result, scatter's updates); `gone`: the array's
    dimensions that windows lack; `batch`, `starts_batch`: pairs of dimensions that array and indices walk together.
    """

    window: tuple[int, ...]
    gone: tuple[int, ...]
    batch: tuple[int, ...]
    starts_batch: tuple[int, ...]
    index_vector: int

    def array_dims(self, rank: int) -> list[int]:
        """The array's dimensions that windows have, in order."""
        return [d for d in range(rank) if d not in self.gone and d not in self.batch]

    def starts_dim(self, n: int) -> int:
        """The dimension of the indices that is number `n` among those of the slices that are no window's."""
        return n if n < self.index_vector else n + 1

    def batch_dim(self, starts: int) -> int | None:
        """The array's dimension that goes with a dimension of the indices."""
        return self.batch[self.starts_batch.index(starts)] if starts in self.starts_batch else None


@rule("gather")
def gather(i: Instruction) -> OpRule:
    """Parts of an indexed dimension give their elements where an index falls into them and zero elsewhere: summed."""
    entries = aligned_in_gather(i)
    array, indices = batching(entries, i.operand_batching_dims, i.start_indices_batching_dims)
    gone = tuple(d for d in i.collapsed_slice_dims if d not in array)
    dims = _Dims(i.offset_dims, gone, array, indices, i.index_vector_dim)
    b = RuleBuilder.of(i)
    (x, starts), (slices,) = b.operands, b.results
    kept = iter(dims.array_dims(len(x)))
    batch = 0
    for d, size in enumerate(slices):
        if d not in dims.window:
            at = dims.starts_dim(batch)
            b.add(size, (dims.batch_dim(at), at), d)
            batch += 1
            continue
        source = next(kept)
        if x[source] == size:
            b.add(size, (source, None), d)
        elif size == 1:
            _summed(b, x[source], source)
            b.add(size, None, d, FactorKind.NEED_REPLICATION)
        else:
            b.add(x[source], (source, None), d, FactorKind.NEED_REPLICATION, is_blocked=True)
    for d in dims.gone:
        if x[d] == 1:
            b.add(1, (d, None), None, FactorKind.NEED_REPLICATION)
        else:
            _summed(b, x[d], d)
    return _index_vector(b, dims, starts, [None], [None]).build()


def _summed(b: RuleBuilder, size: int, d: int) -> None:
    b.add(size, (d, None), None, FactorKind.REDUCTION, reducer="add", is_positional=True)


@rule("scatter")
def scatter(i: Instruction) -> OpRule:
    """Parts of the updates are scattered apart and combined where the computation allows; parts of an indexed dimension
    take the updates that fall into them."""
    entries = aligned_in_scatter(i)
    walked, indices = batching(entries, i.input_batching_dims, i.scatter_indices_batching_dims)
    gone = tuple(d for d in i.inserted_window_dims if d not in walked)
    dims = _Dims(i.update_window_dims, gone, walked, indices, i.index_vector_dim)
    b = RuleBuilder.of(i)
    count = len(b.operands) // 2
    x, starts, updates = b.operands[0], b.operands[count], b.operands[count + 1]
    reducer = reducer_of(i.to_apply)

    def add(array: int | None, at: int | None, update: int | None, size: int, **what: object) -> None:
        b.add(size, [array] * count + [at] + [update] * count, array, **what)  # type: ignore[arg-type]

    kept = iter(dims.array_dims(len(x)))
    batch = 0
    for d, size in enumerate(updates):
        if d in dims.window:
            target = next(kept)
            if x[target] == size:
                add(target, None, d, size)
            else:
                add(target, None, None, x[target], kind=FactorKind.NEED_REPLICATION)
                add(None, None, d, size, kind=FactorKind.NEED_REPLICATION)
            continue
        at = dims.starts_dim(batch)
        batch += 1
        if (array := dims.batch_dim(at)) is not None:
            add(array, at, d, size)
        elif reducer:
            add(None, at, d, size, kind=FactorKind.REDUCTION, reducer=reducer)
        else:
            add(None, at, d, size, kind=FactorKind.NEED_REPLICATION)
    for d in dims.gone:
        add(d, None, None, x[d], is_positional=True)
    return _index_vector(b, dims, starts, [None] * count, [None] * count).build()


def _index_vector(
    b: RuleBuilder, dims: _Dims, starts: Sequence[int], before: list[None], after: list[None]
) -> RuleBuilder:
    """The dimension along which an index lies must be whole."""
    at = dims.index_vector
    if at < len(starts):
        places = [*before, at, *after][: len(b.operands)]
        b.add(starts[at], places, None, FactorKind.NEED_REPLICATION)
    return b
