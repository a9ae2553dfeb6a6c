"""The variables of a map changed: those unused or decided dropped, symbols made dimensions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from heron.analysis.indexing.expr import Const, Dim, Expr, Sym
from heron.analysis.indexing.linear import build_sum, linear_terms
from heron.analysis.indexing.map import Constraint, IndexingMap, Var

#: how many points are tried to see that constraints on dropped variables can hold at all
_SAMPLES = 1 << 16


def remove_unused(m: IndexingMap, dims: bool = False, also: Iterable[Expr] = ()) -> IndexingMap:
    """Drops symbols and runtime variables that no result needs, and with `dims` such dimensions; renumbers the others.

    A constraint on dropped variables alone goes with them, once it is known that some of their values satisfy it; until
    then, and when it ties a variable to one that is needed, the variables stay.

    Args:
        also: expressions that need variables like a result does.
    """
    needed: set[Expr] = set()
    for e in (*m.results, *also):
        needed |= e.variables()
    if not dims:
        needed.update(Dim(i) for i in range(len(m.dims)))
    loose = list(m.constraints)
    while True:  # a constraint that ties a needed variable to others makes those needed too
        tied = [c for c in loose if not needed.isdisjoint(c[0].variables())]
        if not tied:
            break
        loose = [c for c in loose if c not in tied]
        for e, _, _ in tied:
            needed |= e.variables()
    for group in _connected(loose):
        if not _can_hold(m, group):
            for e, _, _ in group:
                needed |= e.variables()
    return _keep(m, needed)


def _connected(constraints: list[Constraint]) -> list[list[Constraint]]:
    """The constraints in groups without common variables."""
    groups: list[tuple[set[Expr], list[Constraint]]] = []
    for c in constraints:
        variables, members = set(c[0].variables()), [c]
        apart = []
        for known, group in groups:
            if known.isdisjoint(variables):
                apart.append((known, group))
            else:
                variables |= known
                members += group
        groups = [*apart, (variables, members)]
    return [group for _, group in groups]


def _can_hold(m: IndexingMap, constraints: list[Constraint]) -> bool:
    """Whether some of the first points of the variables satisfy all of `constraints`."""
    variables = sorted({v for e, _, _ in constraints for v in e.variables()}, key=lambda v: v.sort_key)
    if not variables:
        return all(lo <= e.evaluate(()) <= hi for e, lo, hi in constraints)
    most = max(2, int(_SAMPLES ** (1 / len(variables))))
    dims: list[np.ndarray | int] = [0] * len(m.dims)
    syms: list[np.ndarray | int] = [0] * (len(m.syms) + len(m.rt_vars))
    ranges = [variable(m, v) for v in variables]
    axes = np.meshgrid(*(np.arange(r.lo, min(r.hi + 1, r.lo + most)) for r in ranges), indexing="ij", sparse=True)
    for v, axis in zip(variables, axes, strict=True):
        (dims if isinstance(v, Dim) else syms)[v.index] = axis  # pyright: ignore[reportAttributeAccessIssue]
    holds = np.True_
    for e, lo, hi in constraints:
        value = e.evaluate(dims, syms)
        holds = holds & (lo <= value) & (value <= hi)
    return bool(np.any(holds))


def variable(m: IndexingMap, v: Expr) -> Var:
    """The range of `Dim(i)` or `Sym(i)` in `m`."""
    at: int = v.index  # pyright: ignore[reportAttributeAccessIssue]
    return m.variables[at if isinstance(v, Dim) else len(m.dims) + at]


def _keep(m: IndexingMap, needed: Collection[Expr]) -> IndexingMap:
    """`m` with these variables only."""
    n, k = len(m.dims), len(m.syms)
    kept_dims = [i for i in range(n) if Dim(i) in needed]
    kept_syms = [i for i in range(k + len(m.rt_vars)) if Sym(i) in needed]
    if len(kept_dims) == n and len(kept_syms) == k + len(m.rt_vars):
        return m
    constraints = [c for c in m.constraints if isinstance(c[0], Const) or not c[0].variables().isdisjoint(needed)]
    return m.replace(constraints=constraints).substitute(
        _numbers(n, kept_dims, Dim),
        _numbers(k + len(m.rt_vars), kept_syms, Sym),
        [m.dims[i] for i in kept_dims],
        [m.syms[i] for i in kept_syms if i < k],
        [m.rt_vars[i - k] for i in kept_syms if i >= k],
    )


def _numbers(count: int, kept: Sequence[int], kind: type[Dim] | type[Sym]) -> list[Expr]:
    """For each old variable the new one; those not kept are nowhere read."""
    found: list[Expr] = [Const(0)] * count
    for new, old in enumerate(kept):
        found[old] = kind(new)
    return found


def eliminate_symbols(m: IndexingMap) -> IndexingMap:
    """Range symbols that an equality of the constraints decides, replaced by what they equal; simplified.

    `(d0)[s0] -> (s0), d0 - s0 in [2, 2]` becomes `(d0) -> (d0 - 2)`, with the range of `s0` as a constraint.
    """
    while True:
        m = m.simplify()
        found = next((r for c in m.constraints if (r := _equality(m, c)) is not None), None)
        if found is None:
            return remove_unused(m)
        at, value, constraint = found
        v = m.syms[at]
        exprs: list[Expr | None] = [None] * len(m.syms)
        exprs[at] = value
        left = [c for c in m.constraints if c is not constraint]
        m = m.replace(constraints=[*left, (value, v.lo, v.hi)]).substitute((), exprs)
        m = m.replace(syms=[*m.syms[:at], Var(0, 0, v.name), *m.syms[at + 1 :]])  # no longer read


def _equality(m: IndexingMap, constraint: Constraint) -> tuple[int, Expr, Constraint] | None:
    """`(symbol, value, constraint)` of a constraint `symbol + … in [c, c]`."""
    e, lo, hi = constraint
    if lo != hi:
        return None
    terms, constant = linear_terms(e)
    for x, factor in terms.items():
        if not isinstance(x, Sym) or x.index >= len(m.syms) or abs(factor) != 1:
            continue
        rest = {a: -k * factor for a, k in terms.items() if a is not x}
        if not any(x in a.variables() for a in rest):
            return x.index, build_sum(rest, (lo - constant) * factor), constraint
    return None


def symbols_to_dims(m: IndexingMap, which: Collection[int] | None = None) -> IndexingMap:
    """The map with range symbols `which` (default: all, and the runtime variables too) as further dimensions."""
    n, k = len(m.dims), len(m.syms)
    chosen = range(k + len(m.rt_vars)) if which is None else sorted(which)
    variables = m.syms + m.rt_vars
    exprs: list[Expr] = []
    for i in range(len(variables)):
        before = sum(c < i for c in chosen)
        exprs.append(Dim(n + before) if i in chosen else Sym(i - before))
    kept = [i for i in range(len(variables)) if i not in chosen]
    return m.substitute(
        (),
        exprs,
        (*m.dims, *(variables[i] for i in chosen)),
        [variables[i] for i in kept if i < k],
        [variables[i] for i in kept if i >= k],
    )
