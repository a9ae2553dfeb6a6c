"""Hypothesis strategies for expressions and maps, and a map's points as NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from heron.analysis.indexing import Const, Dim, Expr, IndexingMap, Sym

VARIABLES = (Dim(0), Dim(1), Sym(0))
FACTORS = (-4, -3, -1, 2, 3, 5, 6, 8, 12)
DIVISORS = (2, 3, 4, 6, 8, 12)
MODULI = st.sampled_from(DIVISORS)
WIDTHS = st.sampled_from((0, 0, 1, 5, 20))


@cache
def expressions(leaves: tuple[Expr, ...] = VARIABLES, size: int = 8) -> st.SearchStrategy[Expr]:
    """Sums, multiples, quotients and remainders of `leaves` and small constants."""

    def grow(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
        divisors = st.sampled_from(DIVISORS)
        return st.one_of(
            st.builds(lambda a, b: a + b, inner, inner),
            st.builds(lambda a, c: a * c, inner, st.sampled_from(FACTORS)),
            st.builds(lambda a, c: a // c, inner, divisors),
            st.builds(lambda a, c: a % c, inner, divisors),
            st.builds(lambda a, b, c, k: a * k - a // c * (c * k) + b, inner, inner, divisors, st.integers(-2, 3)),
        )

    constants = st.integers(-7, 9).map(Const)
    return st.recursive(st.one_of(st.sampled_from(leaves), constants), grow, max_leaves=size)


@cache
def ranges(most: int = 8) -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(st.integers(-3, 3), st.integers(0, most)).map(lambda p: (p[0], p[0] + p[1]))


@st.composite
def maps(draw: Any, results: int = 2, constraints: int = 3) -> IndexingMap:
    """Maps `(d0, d1)[s0]` with up to `constraints` constraints, residues among them; the domain may be empty."""
    found = []
    for _ in range(draw(st.integers(0, constraints))):
        e, lo = draw(expressions(size=4)), draw(st.integers(-4, 9))
        e = e % draw(MODULI) if draw(st.booleans()) else e
        found.append((e, lo, lo + draw(WIDTHS)))
    return IndexingMap(
        [draw(expressions(size=5)) for _ in range(results)], [draw(ranges()), draw(ranges())], [draw(ranges(4))], found
    )


def grid(m: IndexingMap) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Dimensions and symbols (runtime variables last) of every point in the variables' ranges, flat."""
    variables = (*m.dims, *m.syms, *m.rt_vars)
    axes = np.meshgrid(*(np.arange(v.lo, v.hi + 1) for v in variables), indexing="ij")
    flat = [a.ravel() for a in axes]
    return flat[: len(m.dims)], flat[len(m.dims) :]


def inside(m: IndexingMap, dims: Sequence[np.ndarray], syms: Sequence[np.ndarray]) -> np.ndarray:
    """Which of these points lie in the domain, each condition evaluated as it is written."""
    values = [*dims, *syms]
    holds = np.ones(np.broadcast_shapes(*(v.shape for v in values)), bool)
    for v, x in zip((*m.dims, *m.syms, *m.rt_vars), values, strict=True):
        holds &= (v.lo <= x) & (x <= v.hi)
    for e, lo, hi in m.constraints:
        x = e.evaluate(dims, syms)
        holds &= (lo <= x) & (x <= hi)
    return holds
