"""The domain of an indexing map made as small and as plain as can be told: constraints normalised, merged, used.

A constraint is brought to the form `sum of atoms in [lo, hi]` with no constant, no common factor and a positive first
coefficient. Its bounds of single variables move to their ranges; constraints that say nothing more are dropped;
residues of one expression are merged; and the others sharpen the results.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import gcd

from heron.analysis.indexing.expr import BinaryExpr, Const, Dim, Expr, FloorDiv, Mod, Sym
from heron.analysis.indexing.linear import build_sum, linear_terms
from heron.analysis.indexing.map import Constraint, IndexingMap, Var
from heron.analysis.indexing.simplify import Range, Simplifier, simplifier
from heron.errors import HeronError

#: how often ranges are tightened by constraints; contradictory sums could take as many rounds as they have values
_ROUNDS = 8


@lru_cache(maxsize=8192)
def simplify_map(m: IndexingMap, keep_dims: bool = False) -> IndexingMap:
    """See `IndexingMap.simplify`."""
    for tightening in range(_ROUNDS, -1, -1):
        if m.is_known_empty:
            return IndexingMap.empty(len(m.results), m.dims, m.syms, m.rt_vars)
        found = _simplify_domain(m, keep_dims, tighten=tightening > 0)
        if found is None:
            return IndexingMap.empty(len(m.results), m.dims, m.syms, m.rt_vars)
        constraints, variables = found
        n, k = len(m.dims), len(m.dims) + len(m.syms)
        new = IndexingMap(m.results, variables[:n], variables[n:k], constraints, variables[k:])
        ranges = new.domain_simplifier
        new = new.replace(results=[ranges.simplify(e) for e in m.results])
        if new == m:
            break
        m = new
    _require_int64(m)
    return m


def _require_int64(m: IndexingMap) -> None:
    """Every value met on the way to a result must be a 64-bit integer: that is what programs compute with."""
    ranges = m.simplifier
    seen: set[Expr] = set()
    stack = [*m.results, *(e for e, _, _ in m.constraints)]
    while stack:
        e = stack.pop()
        if e in seen or not isinstance(e, (BinaryExpr, Const)):
            continue
        seen.add(e)
        lo, hi = ranges.range_of(e)
        if lo < -(2**63) or hi >= 2**63:
            why = f"its values lie in [{lo}, {hi}]"
            raise HeronError("GEN106", "an index does not fit in 64 bits", where=f"{e} of {m}", why=why)
        if isinstance(e, BinaryExpr):
            stack += (e.lhs, e.rhs)


def _simplify_domain(m: IndexingMap, keep_dims: bool, tighten: bool) -> tuple[list[Constraint], list[Var]] | None:
    """The constraints that still say something, and the variables' ranges. None: no point satisfies them."""
    domain = _Domain(m, keep_dims)
    if not m.constraints:
        return [], domain.variables
    ranges = given = m.simplifier
    merged = _merged(m.constraints, ranges)
    if not _merge_residues(merged):
        return None
    residues = [(e, *r) for e, r in merged.items() if isinstance(e, Mod) and r[0] == r[1]]
    rest = [(e, *r) for e, r in merged.items() if not isinstance(e, Mod) or r[0] != r[1]]
    if residues and rest:  # the others may take them for granted
        given = simplifier(ranges.dims, ranges.syms, tuple(residues))
        rest = [(e, *r) for e, r in _merged(rest, given).items()]
    left: list[Constraint] = []
    for e, lo, hi in [*residues, *rest]:
        have = (ranges if isinstance(e, Mod) else given).range_of(e)
        lo, hi = max(lo, have[0]), min(hi, have[1])
        if lo > hi:
            return None
        if (lo, hi) == have:
            continue
        if tighten or domain.is_free(e):
            domain.bound(e, lo, hi, ranges)
        if not domain.is_free(e):
            left.append((e, lo, hi))
    if any(v.lo > v.hi for v in domain.variables):
        return None
    return left, domain.variables


def _merged(constraints: Iterable[Constraint], ranges: Simplifier) -> dict[Expr, Range]:
    """The constraints in normal form, one range for each expression."""
    merged: dict[Expr, Range] = {}
    for e, lo, hi in constraints:
        e, lo, hi = normalize(ranges.simplify(e), lo, hi)
        known = merged.get(e, (lo, hi))
        merged[e] = max(lo, known[0]), min(hi, known[1])
    return merged


def normalize(e: Expr, lo: int, hi: int) -> Constraint:
    """An equivalent constraint without constant, common factor or outer `floordiv`; `e` must be canonical."""
    while True:
        terms, constant = linear_terms(e)
        if not terms:  # always or never true
            return (Const(0), 0, 0) if lo <= constant <= hi else (Const(0), 1, 1)
        lo, hi = lo - constant, hi - constant
        factor = gcd(*terms.values())
        if _leading(terms) < 0:
            factor, lo, hi = -factor, -hi, -lo
        lo, hi = -(-lo // abs(factor)), hi // abs(factor)
        e = build_sum({a: k // factor for a, k in terms.items()}, 0)
        if not isinstance(e, FloorDiv) or not isinstance(e.rhs, Const):
            return e, lo, hi
        e, lo, hi = e.lhs, lo * e.rhs.value, hi * e.rhs.value + e.rhs.value - 1  # x floordiv c in [lo, hi]


def _leading(terms: dict[Expr, int]) -> int:
    """The coefficient of the term that stands first."""
    return terms[min(terms, key=lambda a: a.sort_key)]


def _merge_residues(merged: dict[Expr, Range]) -> bool:
    """`x mod a == r` and `x mod b == s` become one residue of lcm(a, b). False when both cannot be."""
    residues: dict[Expr, tuple[int, int]] = {}
    for e, (lo, hi) in list(merged.items()):
        if not isinstance(e, Mod) or not isinstance(e.rhs, Const) or lo != hi:
            continue
        modulus, residue = e.rhs.value, lo
        if not 0 <= residue < modulus:
            return False
        if e.lhs in residues:
            known_modulus, known = residues[e.lhs]
            g = gcd(modulus, known_modulus)
            if (residue - known) % g:
                return False
            step = (residue - known) // g * pow(known_modulus // g, -1, modulus // g) % (modulus // g)
            del merged[Mod(e.lhs, Const(known_modulus))]
            merged.pop(e, None)
            residue, modulus = known + known_modulus * step, known_modulus // g * modulus
            merged[Mod(e.lhs, Const(modulus))] = residue, residue
        residues[e.lhs] = modulus, residue
    return True


class _Domain:
    """The variables of a map while constraints tighten their ranges."""

    def __init__(self, m: IndexingMap, keep_dims: bool) -> None:
        self.variables = list(m.variables)
        self.num_dims, self.keep_dims = len(m.dims), keep_dims

    def is_free(self, e: Expr) -> bool:
        """Whether `e` is a variable whose range may change."""
        return isinstance(e, Sym) or (isinstance(e, Dim) and not self.keep_dims)

    def bound(self, e: Expr, lo: int, hi: int, ranges: Simplifier) -> None:
        """Tightens the variables of `e` by `lo <= e <= hi`."""
        if self.is_free(e):
            self._tighten(e, lo, hi)
        elif isinstance(e, Mod) and isinstance(e.rhs, Const):
            self._tighten_residue(e.lhs, e.rhs.value, lo, hi)
        elif isinstance(e, FloorDiv) and isinstance(e.rhs, Const):
            self.bound(e.lhs, lo * e.rhs.value, hi * e.rhs.value + e.rhs.value - 1, ranges)
        elif not isinstance(e, (Dim, Const)):
            self._bound_terms(e, lo, hi, ranges)

    def _bound_terms(self, e: Expr, lo: int, hi: int, ranges: Simplifier) -> None:
        terms, constant = linear_terms(e)
        if e in terms:  # a product of variables
            return
        bounds = {a: sorted((k * ranges.range_of(a)[0], k * ranges.range_of(a)[1])) for a, k in terms.items()}
        low = constant + sum(b[0] for b in bounds.values())
        high = constant + sum(b[1] for b in bounds.values())
        for a, k in terms.items():  # k a == e - the rest
            least, most = lo - (high - bounds[a][1]), hi - (low - bounds[a][0])
            if k < 0:
                least, most = -most, -least
            self.bound(a, -(-least // abs(k)), most // abs(k), ranges)

    def _tighten(self, e: Expr, lo: int, hi: int) -> None:
        at = e.index + (0 if isinstance(e, Dim) else self.num_dims)  # pyright: ignore[reportAttributeAccessIssue]
        v = self.variables[at]
        if lo > v.lo or hi < v.hi:
            self.variables[at] = Var(max(v.lo, lo), min(v.hi, hi), v.name)

    def _tighten_residue(self, e: Expr, modulus: int, lo: int, hi: int) -> None:
        """Moves the ends of a variable's range to values with `(x + c) mod modulus in [lo, hi]`."""
        terms, constant = linear_terms(e)
        ((x, k), *more) = terms.items()
        if more or k != 1 or not self.is_free(x) or not 0 <= lo <= hi < modulus:
            return
        v = self.variables[x.index + (0 if isinstance(x, Dim) else self.num_dims)]  # pyright: ignore
        first, last = (v.lo + constant) % modulus, (v.hi + constant) % modulus
        least = v.lo + (0 if lo <= first <= hi else (lo - first) % modulus)
        most = v.hi - (0 if lo <= last <= hi else (last - hi) % modulus)
        self._tighten(x, least, most)
