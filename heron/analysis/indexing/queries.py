"""Questions about maps: strides, runs that lie side by side in memory, how many points.

`sizes` is always the shape that a map's results index, outermost dimension in memory first.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from heron.analysis.indexing.expr import Const, Dim, Expr, Sym, add, floordiv, mod, mul
from heron.analysis.indexing.inverse import inverse
from heron.analysis.indexing.map import IndexingMap, Var
from heron.analysis.indexing.variables import remove_unused, symbols_to_dims, variable
from heron.errors import HeronError

#: how many points are listed one by one
MOST_POINTS = 1 << 22


# -- strides and runs --------------------------------------------------------------------------------------------------


def strides(m: IndexingMap, v: Expr) -> tuple[int | None, ...]:
    """By how much each result grows with `v` (a `Dim` or `Sym`); None where that depends on the point."""
    r = variable(m, v)
    if r.lo >= r.hi:
        return (0,) * len(m.results)
    shorter = _with_range(m, v, Var(r.lo, r.hi - 1))
    ahead = _replacing(m, v, v + 1)
    steps = [shorter.simplifier.simplify(e.substitute(*ahead) - e) for e in m.results]
    return tuple(e.value if isinstance(e, Const) else None for e in steps)


def linear_index(m: IndexingMap, sizes: Sequence[int]) -> Expr:
    """The position in memory of the element read, simplified.

    Raises:
        HeronError: GEN107 when `sizes` is not one size a result.
    """
    if len(sizes) != len(m.results):
        why = f"{len(m.results)} results, {len(sizes)} sizes"
        raise HeronError("GEN107", "the map does not index a tensor of these sizes", where=repr(m), why=why)
    total: Expr = Const(0)
    for e, size in zip(m.results, sizes, strict=True):
        total = add(mul(total, Const(size)), e)
    return m.domain_simplifier.simplify(total)


def linear_stride(m: IndexingMap, v: Expr, sizes: Sequence[int]) -> int | None:
    """By how many elements in memory one step of `v` moves; None when that depends on the point."""
    return strides(m.replace(results=[linear_index(m, sizes)]), v)[0]


def contiguous_run(m: IndexingMap, v: Expr, sizes: Sequence[int], most: int = 1024) -> int:
    """The number of consecutive values of `v` that read consecutive elements: all, or a power of two up to `most`.

    Runs start at the first value of `v` and follow one another without gap; all points of a run lie in the domain, or
    none does. The 32 threads of a warp read one block of memory when the run along the thread variable is 32 or more.
    """
    return _run(m, v, sizes, most, aligned=False)


def vector_width(m: IndexingMap, v: Expr, sizes: Sequence[int], most: int = 16) -> int:
    """Like `contiguous_run`, a power of two, and each run starts at a multiple of its length in memory."""
    return _run(m, v, sizes, most, aligned=True)


def _run(m: IndexingMap, v: Expr, sizes: Sequence[int], most: int, aligned: bool) -> int:
    r = variable(m, v)
    length = r.hi - r.lo + 1
    index = linear_index(m, sizes)
    width = most if aligned else length
    while width > 1:
        if length % width == 0 and _is_run(m, v, index, width, aligned):
            return width
        # after the whole length, powers of two
        width = min(most, 1 << (width - 1).bit_length() - 1) if not aligned else width // 2
    return 1


def _is_run(m: IndexingMap, v: Expr, index: Expr, width: int, aligned: bool) -> bool:
    r, within = variable(m, v), Dim(len(m.dims))
    split = _replacing(m, v, v * width + within + r.lo)
    runs = _with_range(m, v, Var(0, (r.hi - r.lo + 1) // width - 1))
    runs = runs.replace(dims=(*runs.dims, Var(0, width - 1)), constraints=())
    simplify = runs.simplifier.simplify
    start = simplify(index.substitute(*split) - within)
    if within in start.variables() or (aligned and simplify(mod(start, Const(width))) is not Const(0)):
        return False
    for e, lo, hi in m.constraints:  # whole runs: none of the ends lies inside of one
        e = simplify(e.substitute(*split))
        if within not in e.variables():
            continue
        if lo % width or (hi + 1) % width or within in simplify(floordiv(e, Const(width))).variables():
            return False
    return True


def _replacing(m: IndexingMap, v: Expr, e: Expr) -> tuple[list[Expr | None], list[Expr | None]]:
    """Arguments of `substitute` that put `e` in the place of `v`."""
    dims: list[Expr | None] = [None] * len(m.dims)
    syms: list[Expr | None] = [None] * (len(m.syms) + len(m.rt_vars))
    (dims if isinstance(v, Dim) else syms)[v.index] = e  # pyright: ignore[reportAttributeAccessIssue]
    return dims, syms


def _with_range(m: IndexingMap, v: Expr, r: Var) -> IndexingMap:
    at: int = v.index  # pyright: ignore[reportAttributeAccessIssue]
    at += 0 if isinstance(v, Dim) else len(m.dims)
    n, k = len(m.dims), len(m.dims) + len(m.syms)
    variables = (*m.variables[:at], r, *m.variables[at + 1 :])
    return m.replace(dims=variables[:n], syms=variables[n:k], rt_vars=variables[k:])


# -- points ------------------------------------------------------------------------------------------------------------


def points(m: IndexingMap) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Dimensions and symbols (runtime variables last) of every point of the domain, as flat int64 arrays.

    Raises:
        HeronError: GEN108 when the variables' ranges hold more than `MOST_POINTS` points.
    """
    sizes = [max(0, v.hi - v.lo + 1) for v in m.variables]
    if prod(sizes) > MOST_POINTS:
        why = f"{prod(sizes)} points, at most {MOST_POINTS}"
        raise HeronError("GEN108", "the map has too many points to list", where=repr(m), why=why)
    axes = [np.arange(v.lo, v.lo + size, dtype=np.int64) for v, size in zip(m.variables, sizes, strict=True)]
    values = [a.ravel() for a in np.meshgrid(*axes, indexing="ij")]
    n = len(m.dims)
    holds = np.broadcast_to(m.contains(values[:n], values[n : n + len(m.syms)], values[n + len(m.syms) :]), prod(sizes))
    values = [a[holds] for a in values]
    return values[:n], values[n:]


def num_points(m: IndexingMap) -> int | None:
    """The number of points of the domain; None if that takes listing more than `MOST_POINTS` of them."""
    m = m.simplify()
    if m.is_known_empty:
        return 0
    tied = {v for e, _, _ in m.constraints for v in e.variables()}
    free = [v for i, v in enumerate(m.dims) if Dim(i) not in tied]
    free += [v for i, v in enumerate(m.syms + m.rt_vars) if Sym(i) not in tied]
    count = prod(v.hi - v.lo + 1 for v in free)
    if not tied:
        return count
    needed = remove_unused(m.replace(results=sorted(tied, key=lambda v: v.sort_key)), dims=True)
    if prod(v.hi - v.lo + 1 for v in needed.variables) > MOST_POINTS:
        return None
    dims, syms = points(needed)
    return count * len((dims or syms)[0])


def num_distinct(m: IndexingMap) -> int | None:
    """The number of different elements read, over all points; None if it is unknown."""
    m = remove_unused(m.simplify(), dims=True)
    if m.is_known_empty or not m.results or not m.variables:
        return min(1, num_points(m) or 0)
    there = symbols_to_dims(m)
    if inverse(there) is not None:
        return num_points(there)
    if prod(v.hi - v.lo + 1 for v in m.variables) > MOST_POINTS:
        return None
    dims, syms = points(m)
    results = [np.broadcast_to(r.evaluate(dims, syms), (dims or syms)[0].shape) for r in m.results]
    return len(np.unique(np.stack(results), axis=1).T)
