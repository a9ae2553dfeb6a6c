"""Range-aware simplification of index expressions to one canonical form.

A `Simplifier` is made for the ranges of a map's variables and memoises; expressions are brought to linear form
(`sum of coefficient * atom + constant`, atoms being variables, `floordiv`s and `mod`s), and each rule below carries its
law. Canonical: sums are flat, left-associated and sorted (`Expr.sort_key`), the constant last; no `floordiv` or `mod`
holds a multiple of its divisor; `(x mod ab) floordiv a` is written `(x floordiv a) mod b`; what is left over by a
division is a `mod`, and a division of a division is one division.

A simplifier may also be given facts: bounds on expressions that hold wherever the result is used (the constraints of a
map). They sharpen the ranges of expressions, and with them every rule.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from math import gcd
from typing import TypeAlias

from heron.analysis.indexing.expr import Add, BinaryExpr, Const, Dim, Expr, FloorDiv, Mod, Mul
from heron.analysis.indexing.linear import (
    Terms,
    build_sum,
    common_divisor,
    covers,
    divide_by_gcd,
    drop_zeros,
    linear_terms,
    multiple,
    split_multiples,
)

Range: TypeAlias = tuple[int, int]  # inclusive
Fact: TypeAlias = tuple[Expr, int, int]  # lo <= expression <= hi


class Simplifier:
    """Simplifies expressions over variables with the given inclusive ranges.

    Args:
        dims: range of each `Dim`; syms: range of each `Sym` (range variables, then runtime variables).
        facts: bounds on expressions; those in canonical form are made use of.
    """

    __slots__ = ("_facts", "_memo", "_ranges", "dims", "syms")

    def __init__(self, dims: tuple[Range, ...], syms: tuple[Range, ...] = (), facts: Iterable[Fact] = ()) -> None:
        self.dims, self.syms = dims, syms
        self._memo: dict[Expr, Expr] = {}
        self._ranges: dict[Expr, Range] = {}
        self._facts: list[tuple[Terms, Range]] = []
        for e, lo, hi in facts:
            known = self._range(e)
            self._ranges[e] = max(known[0], lo), min(known[1], hi)
            terms, constant = linear_terms(e)
            self._facts.append((drop_zeros(terms), (self._ranges[e][0] - constant, self._ranges[e][1] - constant)))

    def simplify(self, e: Expr) -> Expr:
        """The canonical form of `e`; equal to `e` at every point in the ranges."""
        known = self._memo.get(e)
        if known is None:
            if isinstance(e, BinaryExpr):
                known = build_sum(*self._linear(e))
            else:
                known = self._atom_or_constant(e)
            self._memo[e] = known
            self._memo[known] = known
        return known

    def range_of(self, e: Expr) -> Range:
        """An inclusive range that holds every value of `e` (exact for canonical forms without shared variables)."""
        known = self._ranges.get(e)
        if known is None:
            known = self._ranges[e] = self._range(e)
        return known

    # -- ranges

    def _range(self, e: Expr) -> Range:
        if isinstance(e, Const):
            return e.value, e.value
        if not isinstance(e, BinaryExpr):
            table = self.dims if isinstance(e, Dim) else self.syms
            return table[e.index]  # pyright: ignore[reportAttributeAccessIssue]
        lo, hi = self.range_of(e.lhs)
        if isinstance(e, Add):
            if self._facts:
                return self._sum_range(*linear_terms(e))
            lo2, hi2 = self.range_of(e.rhs)
            return lo + lo2, hi + hi2
        if isinstance(e, Mul):
            lo2, hi2 = self.range_of(e.rhs)
            corners = (lo * lo2, lo * hi2, hi * lo2, hi * hi2)
            return min(corners), max(corners)
        assert isinstance(e.rhs, Const)
        c = e.rhs.value
        if isinstance(e, FloorDiv):
            return lo // c, hi // c
        return (lo % c, hi % c) if lo // c == hi // c else (0, c - 1)

    def _sum_range(self, terms: Terms, constant: int) -> Range:
        lo = hi = constant
        for atom, k in terms.items():
            a, b = self.range_of(atom)
            if k > 0:
                lo, hi = lo + a * k, hi + b * k
            else:
                lo, hi = lo + b * k, hi + a * k
        for fact, bounds in self._facts:
            factor = multiple(terms, fact)
            if factor and len(fact) > 1:
                a, b = self._sum_range({x: k for x, k in terms.items() if x not in fact}, constant)
                low, high = (bounds[0], bounds[1]) if factor > 0 else (bounds[1], bounds[0])
                lo, hi = max(lo, a + factor * low), min(hi, b + factor * high)
        return lo, hi

    # -- linear form

    def _atom_or_constant(self, e: Expr) -> Expr:
        lo, hi = self.range_of(e)
        return Const(lo) if lo == hi else e  # a variable with one value is that value

    def _linear(self, e: Expr) -> tuple[Terms, int]:
        """`e` as simplified atoms with coefficients, and a constant."""
        terms: Terms = {}
        constant = self._collect(e, 1, terms)
        if self._facts:
            constant += self._use_residues(terms)
        terms, constant = self._join_div_and_mod(drop_zeros(terms), constant)
        for atom in terms:
            if isinstance(atom, FloorDiv):
                terms, constant = self._remainders(terms, constant)
                break
        return drop_zeros(terms), constant

    def _use_residues(self, terms: Terms) -> int:
        """`(x floordiv c) * kc == (x - r) * k` where a fact says `x mod c == r`; returns the constant."""
        constant = 0
        for atom in [a for a in terms if isinstance(a, FloorDiv)]:
            assert isinstance(atom, FloorDiv) and isinstance(atom.rhs, Const)
            lo, hi = self._ranges.get(Mod(atom.lhs, atom.rhs), (0, 1))
            k, odd = divmod(terms[atom], atom.rhs.value)
            if lo == hi and not odd:
                del terms[atom]
                constant += self._add_canonical(atom.lhs, k, terms) - lo * k
        return constant

    def _collect(self, e: Expr, factor: int, terms: Terms) -> int:
        """Adds `factor * e` to `terms`; returns its constant part."""
        if isinstance(e, Const):
            return factor * e.value
        if isinstance(e, Add):
            return self._collect(e.lhs, factor, terms) + self._collect(e.rhs, factor, terms)
        if isinstance(e, Mul):
            if isinstance(e.rhs, Const):
                return self._collect(e.lhs, factor * e.rhs.value, terms)
            if isinstance(e.lhs, Const):
                return self._collect(e.rhs, factor * e.lhs.value, terms)
        known = self._memo.get(e)
        if known is e:
            terms[e] = terms.get(e, 0) + factor
            return 0
        if known is None:
            known = self._memo[e] = self._atom(e)
            self._memo.setdefault(known, known)
        return self._add_canonical(known, factor, terms)

    def _add_canonical(self, e: Expr, factor: int, terms: Terms) -> int:
        """Like `_collect` for an expression already canonical: its atoms are taken as they are."""
        if isinstance(e, Const):
            return factor * e.value
        if isinstance(e, Add):
            left = self._add_canonical(e.lhs, factor, terms)
            return left + self._add_canonical(e.rhs, factor, terms)
        if isinstance(e, Mul) and isinstance(e.rhs, Const):
            return self._add_canonical(e.lhs, factor * e.rhs.value, terms)
        terms[e] = terms.get(e, 0) + factor
        return 0

    def _atom(self, e: Expr) -> Expr:
        if isinstance(e, (FloorDiv, Mod)):
            terms, constant = self._linear(e.lhs)
            assert isinstance(e.rhs, Const)
            rule = self._floordiv if isinstance(e, FloorDiv) else self._mod
            found = rule(terms, constant, e.rhs.value)
            return self._atom_or_constant(found) if self._facts else found
        return self._atom_or_constant(e)

    def _join_div_and_mod(self, terms: Terms, constant: int) -> tuple[Terms, int]:
        """`(x floordiv c) * kc + (x mod c) * k == x * k`, and `((x floordiv c) mod b) * kc + (x mod c) * k`."""
        for atom in [a for a in terms if isinstance(a, Mod)]:
            assert isinstance(atom, Mod) and isinstance(atom.rhs, Const)
            k, c = terms[atom], atom.rhs.value
            partners = [a for a, factor in terms.items() if factor == k * c]
            if not partners:
                continue
            inner, inner_constant = self._linear(atom.lhs)
            quotient = self._floordiv(dict(inner), inner_constant, c)
            if isinstance(quotient, (Const, Add, Mul)):
                continue
            if quotient in partners:
                partner, joined = quotient, build_sum(inner, inner_constant)
            else:
                partner = next((a for a in partners if _is_quotient_mod(a, quotient)), None)
                if partner is None:
                    continue
                joined = self._joined_mod(partner, quotient, inner, inner_constant, c)
            terms = dict(terms)
            del terms[atom], terms[partner]
            constant += self._add_canonical(joined, k, terms)
            return self._join_div_and_mod(drop_zeros(terms), constant)
        return terms, constant

    def _joined_mod(self, partner: Expr, quotient: Expr, inner: Terms, constant: int, c: int) -> Expr:
        """`((y + x floordiv c) mod b) * c + x mod c == (yc + x) mod bc`; `partner` is the first `mod`."""
        assert isinstance(partner, Mod) and isinstance(partner.rhs, Const)
        terms, partner_constant = linear_terms(partner.lhs)
        del terms[quotient]
        whole = dict(inner)
        for a, factor in terms.items():
            whole[a] = whole.get(a, 0) + factor * c
        return self._mod(drop_zeros(whole), constant + partner_constant * c, partner.rhs.value * c)

    def _remainders(self, terms: Terms, constant: int) -> tuple[Terms, int]:
        """`x * k - (x floordiv c) * kc == (x mod c) * k`."""
        for atom in [a for a in terms if isinstance(a, FloorDiv)]:
            assert isinstance(atom, FloorDiv) and isinstance(atom.rhs, Const)
            c = atom.rhs.value
            factor, odd = divmod(-terms.get(atom, 0), c)
            if odd or not factor:
                continue
            inner, inner_constant = linear_terms(atom.lhs)
            if not all(covers(terms.get(a, 0), k * factor) for a, k in inner.items()):
                continue
            terms = dict(terms)
            del terms[atom]
            for a, k in inner.items():
                terms[a] -= k * factor
            constant -= inner_constant * factor
            constant += self._add_canonical(self._mod(dict(inner), inner_constant, c), factor, terms)
            return self._remainders(drop_zeros(terms), constant)  # what is left may be a remainder now
        return terms, constant

    # -- floordiv and mod by a constant

    def _floordiv(self, terms: Terms, constant: int, c: int) -> Expr:
        """Canonical `(terms + constant) floordiv c`; `terms` is consumed."""
        if c == 1:
            return build_sum(terms, constant)
        whole, rest = split_multiples(terms, c)  # (cq + r) floordiv c == q + r floordiv c
        offset, constant = divmod(constant, c)
        lo, hi = self._sum_range(rest, constant)
        if lo // c == hi // c:
            return build_sum(whole, offset + lo // c)
        rest, constant, c = divide_by_gcd(rest, constant, c)
        rest, constant, c = self._drop_small_part(rest, constant, c)
        quotient = self._floordiv_atom(rest, constant, c)
        offset += self._add_canonical(quotient, 1, whole)
        return build_sum(drop_zeros(whole), offset)

    def _drop_small_part(self, rest: Terms, constant: int, c: int) -> tuple[Terms, int, int]:
        """`(g a + b) floordiv g c == a floordiv c` where `0 <= b < g`."""
        while True:
            split = self._small_part(rest, constant, c)
            if split is None:
                return rest, constant, c
            g, big, _, big_constant, _ = split
            rest, constant, c = {a: k // g for a, k in big.items()}, big_constant // g, c // g

    def _small_part(self, rest: Terms, constant: int, c: int) -> tuple[int, Terms, Terms, int, int] | None:
        """A divisor g of c with `rest + constant == g * big + small`, `0 <= small < g`, neither part empty."""
        for g in sorted({gcd(c, k) for k in rest.values()} - {1}, reverse=True):
            big = {a: k for a, k in rest.items() if k % g == 0}
            small = {a: k for a, k in rest.items() if k % g}
            small_constant = constant % g
            lo, hi = self._sum_range(small, small_constant)
            if lo < 0 and small_constant and self._sum_range(small, 0)[0] >= 0:
                lo, hi = self._sum_range(small, 0)
            if lo >= 0 and hi < g and (small or small_constant):
                return g, big, small, constant - small_constant, small_constant
        return None

    def _floordiv_atom(self, rest: Terms, constant: int, c: int) -> Expr:
        if c == 1:
            return build_sum(rest, constant)
        lo, hi = self._sum_range(rest, constant)
        if lo // c == hi // c:
            return Const(lo // c)
        divisions = [a for a in rest if isinstance(a, FloorDiv)]
        if len(divisions) == 1 and rest[divisions[0]] == 1 and isinstance(divisions[0].rhs, Const):
            # (x floordiv a + y) floordiv b == (x + ya) floordiv ab
            atom, a = divisions[0], divisions[0].rhs.value
            inner = {x: k * a for x, k in rest.items() if x is not atom}
            inner_constant = self._add_canonical(atom.lhs, 1, inner)
            return self._floordiv(drop_zeros(inner), constant * a + inner_constant, c * a)
        if constant == 0 and len(rest) == 1:
            ((atom, k),) = rest.items()
            if k == 1 and isinstance(atom, Mod) and isinstance(atom.rhs, Const) and atom.rhs.value % c == 0:
                inner, inner_constant = self._linear(atom.lhs)  # (x mod ab) floordiv a == (x floordiv a) mod b
                quotient = self._floordiv(inner, inner_constant, c)
                return self._mod(*self._linear(quotient), atom.rhs.value // c)
        return FloorDiv(build_sum(rest, constant), Const(c))

    def _mod(self, terms: Terms, constant: int, c: int) -> Expr:
        """Canonical `(terms + constant) mod c`; `terms` is consumed."""
        if c == 1:
            return Const(0)
        lo, hi = self._sum_range(terms, constant)
        if lo // c == hi // c:  # x mod c == x - kc where kc <= x < (k + 1) c
            return build_sum(terms, constant - lo // c * c)
        rest, constant = self._without_inner_mods(terms, constant, c)
        _, rest = split_multiples(rest, c)  # (cq + r) mod c == r mod c
        constant %= c
        lo, hi = self._sum_range(rest, constant)
        if lo // c == hi // c:
            return build_sum(rest, constant - lo // c * c)
        g = common_divisor(rest, c)
        if g > 1:  # (g r + k) mod g c == (r mod c) * g + k, 0 <= k < g
            extra = constant % g
            scaled = {a: k // g for a, k in rest.items()}
            return self.simplify(self._mod(scaled, constant // g, c // g) * g + extra)
        split = self._small_part(rest, constant, c)
        if split is None:
            return Mod(build_sum(rest, constant), Const(c))
        g, big, small, big_constant, small_constant = split  # (g a + b) mod g c == (a mod c) * g + b
        high = self._mod({a: k // g for a, k in big.items()}, big_constant // g, c // g)
        small_constant += self._add_canonical(high, g, small)
        return build_sum(*self._join_div_and_mod(drop_zeros(small), small_constant))

    def _without_inner_mods(self, terms: Terms, constant: int, c: int) -> tuple[Terms, int]:
        """`((x mod ac) k + y) mod c == (x k + y) mod c`."""
        while any(_vanishes(a, k, c) for a, k in terms.items()):
            out: Terms = {}
            for atom, k in terms.items():
                if isinstance(atom, Mod) and _vanishes(atom, k, c):
                    constant += self._add_canonical(atom.lhs, k, out)
                else:
                    out[atom] = out.get(atom, 0) + k
            terms = drop_zeros(out)
        return terms, constant


def _is_quotient_mod(e: Expr, quotient: Expr) -> bool:
    """Whether `e` is `(… + quotient) mod b`."""
    return isinstance(e, Mod) and linear_terms(e.lhs)[0].get(quotient) == 1


def _vanishes(atom: Expr, k: int, c: int) -> bool:
    """Whether `atom` is a `mod` that its multiple `k` inside `mod c` makes needless."""
    return isinstance(atom, Mod) and isinstance(atom.rhs, Const) and atom.rhs.value * k % c == 0


@lru_cache(maxsize=4096)
def simplifier(dims: tuple[Range, ...], syms: tuple[Range, ...] = (), facts: tuple[Fact, ...] = ()) -> Simplifier:
    """The shared, memoising `Simplifier` of these ranges and facts."""
    return Simplifier(dims, syms, facts)


def simplify(e: Expr, dims: tuple[Range, ...], syms: tuple[Range, ...] = ()) -> Expr:
    """The canonical form of `e` for variables in these ranges: `(d0*4 + s0) floordiv 4` with s0 in [0, 3] is `d0`."""
    return simplifier(tuple(dims), tuple(syms)).simplify(e)
