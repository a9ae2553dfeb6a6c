"""Maps with the origin of their runtime variables: which instruction holds the value, and where in it.

`dynamic-slice` reads its operand at `d0 + rt0`; the origin of `rt0` is its start index operand. Composition carries
origins along, variables of equal origin become one, and what is read from a constant or an iota is no variable at all.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from heron.analysis.indexing.expr import Const, Dim, Expr, Sym
from heron.analysis.indexing.hlo_maps import moves_elements, operand_index
from heron.analysis.indexing.map import IndexingMap, compose
from heron.analysis.indexing.variables import eliminate_symbols
from heron.hlo.ir.instruction import Instruction


class RuntimeVar(NamedTuple):
    """The place from which the value of a runtime variable is read.

    `index` is over the variables of the map it belongs to. The value is clamped to the variable's range.
    """

    source: Instruction
    index: tuple[Expr, ...]


class Indexing(NamedTuple):
    """A map, and the origin of each of its runtime variables, in order."""

    map: IndexingMap
    runtime: tuple[RuntimeVar, ...] = ()


@lru_cache(maxsize=4096)
def identity_indexing(sizes: tuple[int, ...]) -> Indexing:
    """Every element reads the one at its own place."""
    return Indexing(IndexingMap.identity(sizes).simplify())


def compose_indexing(first: Indexing, second: Indexing) -> Indexing:
    """`x -> second(first(x))`, simplified, with the origins of both."""
    if _keeps_places(second.map):
        return first
    if _keeps_places(first.map):
        return second
    composed = compose(first.map, second.map)
    to_first = list(first.map.results)
    counts = len(second.map.syms), len(first.map.syms), len(second.map.rt_vars), len(first.map.rt_vars)
    s2, s1, r2, r1 = counts
    move1 = [Sym(s2 + k) for k in range(s1)] + [Sym(s2 + s1 + r2 + k) for k in range(r1)]
    move2 = [Sym(k) for k in range(s2)] + [Sym(s2 + s1 + k) for k in range(r2)]
    inner = [e.substitute((), move1) for e in to_first]
    runtime = [RuntimeVar(v.source, tuple(e.substitute(inner, move2) for e in v.index)) for v in second.runtime]
    runtime += [RuntimeVar(v.source, tuple(e.substitute((), move1) for e in v.index)) for v in first.runtime]
    return fold_runtime(Indexing(composed, tuple(runtime)))


def _keeps_places(m: IndexingMap) -> bool:
    """Whether the (simplified) map is the identity over its dimensions."""
    if len(m.results) != len(m.dims) or m.syms or m.rt_vars or m.constraints:
        return False
    pairs = zip(m.results, m.dims, strict=True)
    return all(r is Dim(at) or (v.lo == v.hi and r is Const(v.lo)) for at, (r, v) in enumerate(pairs))


def fold_runtime(found: Indexing) -> Indexing:
    """Simplified; runtime variables with a known value replaced, equal ones merged, unused variables dropped."""
    m = found.map.simplify()
    if not found.runtime or m.is_known_empty:
        return Indexing(eliminate_symbols(m))
    origins = [_followed(v, m) for v in found.runtime]
    exprs: list[Expr | None] = [None] * (len(m.syms) + len(m.rt_vars))
    first: dict[tuple[RuntimeVar, int, int], Expr] = {}
    for at, (origin, v) in enumerate(zip(origins, m.rt_vars, strict=True)):
        here = len(m.syms) + at
        known = _value(origin, v.lo, v.hi, m)
        exprs[here] = first.setdefault((origin, v.lo, v.hi), Sym(here)) if known is None else known
    m = m.substitute((), exprs).simplify()
    origins = [RuntimeVar(v.source, tuple(e.substitute((), exprs) for e in v.index)) for v in origins]
    return _without_unused(m, origins)


def _without_unused(m: IndexingMap, origins: list[RuntimeVar]) -> Indexing:
    """Drops what neither the results nor the places of runtime variables need."""
    read = set[Expr]().union(*(e.variables() for e in (*m.results, *(c[0] for c in m.constraints))))
    origin = {Sym(len(m.syms) + at): v for at, v in enumerate(origins)}
    pending = [v for v in origin if v in read]
    used: dict[Expr, None] = {}
    while pending:  # a place may depend on a further runtime variable
        v = pending.pop()
        if v not in used:
            used[v] = None
            pending += [x for e in origin[v].index for x in e.variables() if x in origin]
    # as further results, so that they are renumbered with the rest
    rows = [(v, *origin[v].index) for v in origin if v in used]
    kept = eliminate_symbols(m.replace(results=[*m.results, *(e for row in rows for e in row)]))
    results = iter(kept.results[len(m.results) :])
    renumbered = [(next(results), tuple(next(results) for _ in row[1:]), origin[row[0]].source) for row in rows]
    runtime = tuple(RuntimeVar(source, index) for v, index, source in renumbered if not isinstance(v, Const))
    return Indexing(kept.replace(results=kept.results[: len(m.results)]), runtime)


def _followed(v: RuntimeVar, m: IndexingMap) -> RuntimeVar:
    """The same value nearer to where it comes from: through ops that only move elements; its place simplified."""
    source, index = v
    while moves_elements(source) and (not source.op.is_elementwise or source.opcode == "copy"):
        source, index = source.operands[0], operand_index(source, 0, index)
    return RuntimeVar(source, tuple(m.domain_simplifier.simplify(e) for e in index))


def _value(v: RuntimeVar, lo: int, hi: int, m: IndexingMap) -> Expr | None:
    """The value read as an expression of the map's variables; None when it is not known."""
    if v.source.opcode == "constant":
        array = v.source.literal.array
        if all(isinstance(e, Const) for e in v.index):
            values = array[tuple(e.evaluate(()) for e in v.index)].reshape(1)
        else:
            values = np.unique(array)[:2]
        return Const(min(max(int(values[0]), lo), hi)) if len(values) == 1 else None
    if v.source.opcode == "iota":
        e = v.index[v.source.iota_dimension]
        have = m.range_of(e)
        return e if lo <= have[0] and have[1] <= hi else None
    return None
