"""Start indices without the entries that count along a batch dimension."""

from __future__ import annotations

from collections.abc import Sequence

from heron.analysis.sharding.aligned import Aligned
from heron.passes.sharding.partition.context import Partitioner
from heron.passes.sharding.partition.part import Part


def without(p: Partitioner, starts: Part, vector: int, entries: Sequence[Aligned]) -> Part:
    """Start indices without these entries."""
    starts = p.reshard(starts, starts.sharding.with_dim(vector, ()))
    gone = {a.entry for a in entries}
    kept = [p.slice(starts.value, vector, k, k + 1) for k in range(starts.dims[vector]) if k not in gone]
    dims = (*starts.dims[:vector], len(kept), *starts.dims[vector + 1 :])
    return Part(p.concatenate(kept, vector), starts.shape.with_dims(dims), starts.sharding)
