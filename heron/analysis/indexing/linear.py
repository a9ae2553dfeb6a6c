"""Linear forms of index expressions: atoms with coefficients, and a constant."""

from __future__ import annotations

from math import gcd
from typing import TypeAlias

from heron.analysis.indexing.expr import Add, Const, Expr, Mul

Terms: TypeAlias = dict[Expr, int]  # atom -> coefficient, no zeros


def linear_terms(e: Expr) -> tuple[Terms, int]:
    """A canonical expression as atoms with coefficients, and its constant."""
    terms: Terms = {}
    constant = 0
    while isinstance(e, Add):
        constant += _add_term(e.rhs, terms)
        e = e.lhs
    constant += _add_term(e, terms)
    return terms, constant


def _add_term(e: Expr, terms: Terms) -> int:
    if isinstance(e, Const):
        return e.value
    if isinstance(e, Mul) and isinstance(e.rhs, Const):
        terms[e.lhs] = terms.get(e.lhs, 0) + e.rhs.value
    else:
        terms[e] = terms.get(e, 0) + 1
    return 0


def multiple(terms: Terms, fact: Terms) -> int:
    """The factor of `fact`, with all of its atoms, in `terms`; 0 if it is not in them."""
    factor = 0
    for atom, k in fact.items():
        count, odd = divmod(terms.get(atom, 0), k)
        if odd or not count or (factor and count != factor):
            return 0
        factor = count
    return factor


def covers(coefficient: int, part: int) -> bool:
    """Whether `coefficient` can give `part` away without changing sign."""
    return 0 < part <= coefficient if part > 0 else coefficient <= part < 0


def drop_zeros(terms: Terms) -> Terms:
    return terms if all(terms.values()) else {a: k for a, k in terms.items() if k}


def split_multiples(terms: Terms, c: int) -> tuple[Terms, Terms]:
    """`terms == c * whole + rest`: the terms whose coefficient is a multiple of `c`, and the others."""
    whole = {atom: k // c for atom, k in terms.items() if k % c == 0}
    return whole, {atom: k for atom, k in terms.items() if k % c}


def common_divisor(terms: Terms, c: int) -> int:
    for k in terms.values():
        c = gcd(c, k)
    return c


def divide_by_gcd(terms: Terms, constant: int, c: int) -> tuple[Terms, int, int]:
    """`(g r + k) floordiv g c == (r + k floordiv g) floordiv c`."""
    g = common_divisor(terms, c)
    if g == 1:
        return terms, constant, c
    return {a: k // g for a, k in terms.items()}, constant // g, c // g


def build_sum(terms: Terms, constant: int) -> Expr:
    """The flat, sorted sum of canonical atoms."""
    if not terms:
        return Const(constant)
    atoms = sorted(terms, key=_sort_key) if len(terms) > 1 else list(terms)
    total: Expr | None = None
    for atom in atoms:
        k = terms[atom]
        term = atom if k == 1 else Mul(atom, Const(k))
        total = term if total is None else Add(total, term)
    assert total is not None
    return total if constant == 0 else Add(total, Const(constant))


def _sort_key(e: Expr) -> tuple[object, ...]:
    return e.sort_key
