"""Range-aware simplification: known forms, and random expressions against evaluation."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.analysis.indexing import Const, Dim, Expr, Simplifier, Sym, simplify

d0, d1, d2, s0 = Dim(0), Dim(1), Dim(2), Sym(0)
DIMS = ((0, 15), (0, 31), (0, 2))
SYMS = ((0, 3),)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        ((d0 * 4 + s0) // 4, "d0"),
        ((d0 * 4 + s0) % 4, "s0"),
        ((d0 * 32 + d1) // 8, "d0 * 4 + d1 floordiv 8"),
        ((d0 * 32 + d1) % 8, "d1 mod 8"),
        ((d0 * 32 + d1) // 32 * 32 + (d0 * 32 + d1) % 32, "d0 * 32 + d1"),
        (d1 // 8 * 8 + d1 % 8, "d1"),
        ((d0 + d1) // 6 * 6 + (d0 + d1) % 6, "d0 + d1"),
        (d1 // 2 // 4, "d1 floordiv 8"),
        (d1 % 16 % 4, "d1 mod 4"),
        (d1 % 16 // 4, "(d1 floordiv 4) mod 4"),
        (d1 // 32, "0"),
        (d1 % 64, "d1"),
        ((d1 + 32) % 64, "d1 + 32"),
        ((d1 - 32) % 64, "d1 + 32"),
        (s0 + d1 + d0 + s0 + 1 - 4, "d0 + d1 + s0 * 2 - 3"),
        (d0 - d0, "0"),
        (((d0 * 8 + d2 * 2) // 6) % 2, "((d0 * 4 + d2) floordiv 3) mod 2"),
        ((d0 * 12 + d2 * 4 + s0) // 4, "d0 * 3 + d2"),
        ((d0 * 12 + d2 * 4 + s0) // 12, "d0"),
        ((d0 * 12 + d2 * 4 + s0) % 12 // 4, "d2"),
    ],
)
def test_forms(expr: Expr, text: str) -> None:
    assert repr(simplify(expr, DIMS, SYMS)) == text


def test_one_value_variable_is_a_constant() -> None:
    assert simplify(d0 * 4 + d1, ((2, 2), (0, 3))) is d1 + 8


def test_range_of() -> None:
    s = Simplifier(DIMS, SYMS)
    assert s.range_of(d0 * 4 + s0) == (0, 63)
    assert s.range_of(d0 * -4 + s0) == (-60, 3)
    assert s.range_of(d1 % 8) == (0, 7)
    assert s.range_of((d1 + 64) % 32) == (0, 31)
    assert s.range_of(d1 // 5) == (0, 6)


def expressions() -> st.SearchStrategy[Expr]:
    leaves = st.sampled_from([d0, d1, s0, Const(-3), Const(1), Const(6)])

    def grow(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
        divisors = st.sampled_from([2, 3, 4, 6, 8, 16])
        return st.one_of(
            st.builds(lambda a, b: a + b, inner, inner),
            st.builds(lambda a, c: a * c, inner, st.sampled_from([-3, -1, 2, 4, 5, 8])),
            st.builds(lambda a, c: a // c, inner, divisors),
            st.builds(lambda a, c: a % c, inner, divisors),
        )

    return st.recursive(leaves, grow, max_leaves=8)


@settings(max_examples=300, deadline=None)
@given(expressions(), st.sampled_from([1, 4, 7, 8]), st.sampled_from([-2, 0]))
def test_random(e: Expr, size: int, low: int) -> None:
    dims, syms = ((0, size - 1), (low, 5)), ((0, 3),)
    s = Simplifier(dims, syms)
    f = s.simplify(e)
    lo, hi = s.range_of(f)
    for a, b, c in itertools.product(range(size), range(low, 6), range(4)):
        value = e.evaluate((a, b), (c,))
        assert f.evaluate((a, b), (c,)) == value
        assert lo <= value <= hi
    assert Simplifier(dims, syms).simplify(f) is f
