"""IndexingMap: which element(s) of a tensor are read for an element of another one.

`(d0, d1)[s0] -> (d0 * 4 + s0, d1)` with a range for every variable and constraints on expressions. Dimension
variables are given (an output index, thread and block ids), symbols are iterated over (a reduced dimension, the
elements a thread does), runtime variables are read from a tensor when the kernel runs (dynamic-slice offsets).
`Sym(i)` counts range symbols first, then runtime variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple, TypeAlias

from heron.analysis.indexing.expr import Const, Dim, Expr, ExprLike, Sym, as_expr
from heron.analysis.indexing.simplify import Range, Simplifier, simplifier
from heron.errors import HeronError


class Var(NamedTuple):
    """A variable's inclusive range; a `name` (such as `th_x`) replaces `d0` in text."""

    lo: int
    hi: int
    name: str = ""


Constraint: TypeAlias = tuple[Expr, int, int]  # lo <= expr <= hi


class IndexingMap:
    """Immutable, hashable map with ranges.

    Args:
        results: one expression a dimension of the tensor that is read.
        dims, syms, rt_vars: the variables, as `Var` or `(lo, hi)`.
        constraints: `(expr, lo, hi)`: only points where each `expr` lies in its inclusive range belong to the domain.
    """

    __slots__ = ("_hash", "_simplified", "constraints", "dims", "results", "rt_vars", "syms")

    def __init__(
        self,
        results: Iterable[ExprLike],
        dims: Iterable[Var | Range] = (),
        syms: Iterable[Var | Range] = (),
        constraints: Iterable[Constraint] = (),
        rt_vars: Iterable[Var | Range] = (),
    ) -> None:
        self.results: tuple[Expr, ...] = tuple(as_expr(r) for r in results)
        self.dims: tuple[Var, ...] = _vars(dims)
        self.syms: tuple[Var, ...] = _vars(syms)
        self.rt_vars: tuple[Var, ...] = _vars(rt_vars)
        given = tuple(constraints)
        self.constraints: tuple[Constraint, ...] = given if len(given) < 2 else tuple(sorted(given, key=_order))
        self._hash = hash((self.results, self.dims, self.syms, self.rt_vars, self.constraints))
        self._simplified: IndexingMap | None = None

    # -- making

    @staticmethod
    def from_sizes(
        results: Iterable[ExprLike], dims: Iterable[int], syms: Iterable[int] = (), rt_vars: Iterable[int] = ()
    ) -> IndexingMap:
        """A map whose variables run from 0 to size - 1."""
        ranges = [[Var(0, n - 1) for n in sizes] for sizes in (dims, syms, rt_vars)]
        return IndexingMap(results, ranges[0], ranges[1], (), ranges[2])

    @staticmethod
    def identity(sizes: Sequence[int]) -> IndexingMap:
        """`(d0, …) -> (d0, …)` over a tensor of these sizes."""
        return IndexingMap.from_sizes([Dim(i) for i in range(len(sizes))], sizes)

    @staticmethod
    def empty(
        rank: int,
        dims: Iterable[Var | Range] = (),
        syms: Iterable[Var | Range] = (),
        rt_vars: Iterable[Var | Range] = (),
    ) -> IndexingMap:
        """The map of these variables, whatever their ranges, that reads nothing: its domain is known to be empty."""
        nothing = [[Var(0, -1, v.name) for v in _vars(vs)] for vs in (dims, syms, rt_vars)]
        return IndexingMap([Const(0)] * rank, nothing[0], nothing[1], ((Const(0), 1, 1),), nothing[2])

    def replace(self, **changes: Any) -> IndexingMap:
        """The same map with some of results, dims, syms, constraints, rt_vars replaced."""
        fields = {n: getattr(self, n) for n in ("results", "dims", "syms", "constraints", "rt_vars")}
        return IndexingMap(**(fields | changes))

    # -- asking

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, IndexingMap)
            and self._hash == other._hash
            and self.results == other.results
            and self.dims == other.dims
            and self.syms == other.syms
            and self.rt_vars == other.rt_vars
            and self.constraints == other.constraints
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        from heron.analysis.indexing.text import format_map

        return format_map(self)

    @property
    def variables(self) -> tuple[Var, ...]:
        """Dimensions, symbols, runtime variables."""
        return self.dims + self.syms + self.rt_vars

    @property
    def num_dims(self) -> int:
        return len(self.dims)

    @property
    def is_known_empty(self) -> bool:
        """No point satisfies the ranges and constraints (certain once simplified)."""
        if any(v.lo > v.hi for v in self.variables):
            return True
        return any(isinstance(e, Const) and not lo <= e.value <= hi for e, lo, hi in self.constraints)

    @property
    def is_identity(self) -> bool:
        """Result i is `Dim(i)` for every dimension, with no symbol, runtime variable or constraint."""
        if len(self.results) != len(self.dims) or self.syms or self.rt_vars or self.constraints:
            return False
        return all(r is Dim(i) for i, r in enumerate(self.results))

    @property
    def simplifier(self) -> Simplifier:
        """The shared simplifier of this map's variable ranges."""
        return simplifier(_ranges(self.dims), _ranges(self.syms + self.rt_vars))

    @property
    def domain_simplifier(self) -> Simplifier:
        """The shared simplifier that also takes the constraints for granted."""
        return simplifier(_ranges(self.dims), _ranges(self.syms + self.rt_vars), self.constraints)

    def range_of(self, e: Expr) -> Range:
        """An inclusive range holding every value of `e` over this map's variables, constraints or not."""
        s = self.simplifier
        return s.range_of(s.simplify(e))

    @property
    def result_ranges(self) -> tuple[Range, ...]:
        """For each result an inclusive range holding its values over the domain."""
        s = self.domain_simplifier
        return tuple(s.range_of(s.simplify(r)) for r in self.results)

    def evaluate(
        self, dims: Sequence[Any] = (), syms: Sequence[Any] = (), rt_vars: Sequence[Any] = ()
    ) -> tuple[Any, ...]:
        """The results at a point, or at many: ints or NumPy integer arrays that broadcast."""
        symbols = (*syms, *rt_vars)
        return tuple(r.evaluate(dims, symbols) for r in self.results)

    def contains(self, dims: Sequence[Any] = (), syms: Sequence[Any] = (), rt_vars: Sequence[Any] = ()) -> Any:
        """Whether the point lies in the domain (ranges and constraints); arrays give an array of answers.

        Raises:
            HeronError: GEN109 when the point does not have one value for each variable.
        """
        values, symbols = (*dims, *syms, *rt_vars), (*syms, *rt_vars)
        if len(values) != len(self.variables):
            why = f"{len(values)} values for {len(self.variables)} variables"
            raise HeronError("GEN109", "this is not a point of the map", where=repr(self), why=why)
        holds: Any = True
        for v, x in zip(self.variables, values, strict=True):
            holds = holds & (v.lo <= x) & (x <= v.hi)
        for e, lo, hi in self.constraints:
            x = e.evaluate(dims, symbols)
            holds = holds & (lo <= x) & (x <= hi)
        return holds

    def points(self) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Every `(dims, syms)` of the domain, symbols innermost; for tests and small maps without runtime variables."""
        if self.rt_vars:
            raise HeronError("GEN103", "the points of a map with runtime variables are unknown", where=repr(self))
        n = len(self.dims)
        for point in product(*(range(v.lo, v.hi + 1) for v in self.dims + self.syms)):
            if self.contains(point[:n], point[n:]):
                yield point[:n], point[n:]

    # -- changing

    def substitute(
        self,
        dim_exprs: Sequence[Expr | None],
        sym_exprs: Sequence[Expr | None] = (),
        dims: Iterable[Var | Range] | None = None,
        syms: Iterable[Var | Range] | None = None,
        rt_vars: Iterable[Var | Range] | None = None,
    ) -> IndexingMap:
        """Replaces variables by expressions over the variables `dims`, `syms`, `rt_vars` (default: the same ones)."""
        return IndexingMap(
            [r.substitute(dim_exprs, sym_exprs) for r in self.results],
            self.dims if dims is None else dims,
            self.syms if syms is None else syms,
            [(e.substitute(dim_exprs, sym_exprs), lo, hi) for e, lo, hi in self.constraints],
            self.rt_vars if rt_vars is None else rt_vars,
        )

    def compose(self, inner: IndexingMap) -> IndexingMap:
        """`self ∘ inner`: see `compose`."""
        return compose(inner, self)

    def simplify(self, keep_dims: bool = False) -> IndexingMap:
        """Canonical results, variable ranges tightened by constraints, redundant constraints gone; memoised.

        With `keep_dims` the ranges of dimensions stay, and so do constraints on them: for code that is given its
        dimensions and has to test the constraints.

        Raises:
            HeronError: GEN106 when a value on the way to a result does not fit in 64 bits.
        """
        from heron.analysis.indexing.constraints import simplify_map

        if keep_dims:
            return simplify_map(self, keep_dims=True)
        if self._simplified is None:
            self._simplified = simplify_map(self)
            self._simplified._simplified = self._simplified
        return self._simplified


def compose(first: IndexingMap, second: IndexingMap) -> IndexingMap:
    """`x -> second(first(x))`, not simplified.

    Symbols of the result are `second`'s, then `first`'s (likewise runtime variables), as in XLA. The ranges of
    `second`'s dimensions become constraints on `first`'s results.

    Raises:
        HeronError: GEN104 when `first` does not have one result for each dimension of `second`.
    """
    if len(first.results) != len(second.dims):
        why = f"{len(first.results)} results against {len(second.dims)} dimensions"
        raise HeronError("GEN104", "indexing maps do not compose", where=f"{first} then {second}", why=why)
    s2, s1, r2 = len(second.syms), len(first.syms), len(second.rt_vars)
    new_syms = s2 + s1
    move1 = [Sym(s2 + i) for i in range(s1)]
    move1 += [Sym(new_syms + r2 + i) for i in range(len(first.rt_vars))]
    move2 = [Sym(i) for i in range(s2)] + [Sym(new_syms + i) for i in range(r2)]
    if s2 or r2:
        moved = [r.substitute((), move1) for r in first.results]
        constraints = [(e.substitute((), move1), lo, hi) for e, lo, hi in first.constraints]
    else:
        moved, constraints = list(first.results), list(first.constraints)
    results = [r.substitute(moved, move2) for r in second.results]
    constraints += [(e.substitute(moved, move2), lo, hi) for e, lo, hi in second.constraints]
    for e, v in zip(moved, second.dims, strict=True):
        lo, hi = first.range_of(e) if not (s2 or r2) else (v.lo - 1, v.hi)
        if not (v.lo <= lo and hi <= v.hi):
            constraints.append((e, v.lo, v.hi))
    rt_vars = second.rt_vars + first.rt_vars
    return IndexingMap(results, first.dims, second.syms + first.syms, constraints, rt_vars)


def _order(c: Constraint) -> tuple[object, ...]:
    return (c[0].sort_key, c[1], c[2])


def _vars(vs: Iterable[Var | Range]) -> tuple[Var, ...]:
    return tuple(v if isinstance(v, Var) else Var(v[0], v[1]) for v in vs)


def _ranges(vs: Iterable[Var]) -> tuple[Range, ...]:
    return tuple((v.lo, v.hi) for v in vs)
