"""All points of a map, listed: the plain answer that tests compare with."""

from __future__ import annotations

from math import prod

import numpy as np

from heron.analysis.indexing import IndexingMap


def points(m: IndexingMap) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Dimensions and symbols (runtime variables last) of every point of the domain, as flat int64 arrays."""
    sizes = [max(0, v.hi - v.lo + 1) for v in m.variables]
    axes = [np.arange(v.lo, v.lo + size, dtype=np.int64) for v, size in zip(m.variables, sizes, strict=True)]
    values = [a.ravel() for a in np.meshgrid(*axes, indexing="ij")]
    n = len(m.dims)
    holds = np.broadcast_to(m.contains(values[:n], values[n : n + len(m.syms)], values[n + len(m.syms) :]), prod(sizes))
    values = [a[holds] for a in values]
    return values[:n], values[n:]
