"""Range-aware simplification: known forms, and random expressions against evaluation."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings

from heron.analysis.indexing import Dim, Expr, IndexingMap, Simplifier, Sym, format_map, parse_map, simplify
from heron.analysis.indexing.simplify import Range

from .strategies import expressions, grid, ranges

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
        (d1 - d1 // 5 * 5, "d1 mod 5"),
        (d1 // 5 % 3 * 10 + d1 % 5 * 2, "(d1 mod 15) * 2"),
        ((d0 + d1 // 5) % 3 * 5 + d1 % 5, "(d0 * 5 + d1) mod 15"),
        ((d1 // 5 + 2) % 3 * 5 + d1 % 5, "(d1 + 10) mod 15"),
        ((d1 + 3) // 8 * 8 + (d1 + 3) % 8, "d1 + 3"),
        (d0 + d1 * 7 - d1 // 5 * 20, "d0 + d1 * 3 + (d1 mod 5) * 4"),
        (d0 - (d1 * 2 + 3) // 5 * 5 + d1 * 2, "d0 + (d1 * 2 + 3) mod 5 - 3"),
        ((d0 * 3 + d1 // 5) // 4, "(d0 * 15 + d1) floordiv 20"),
        ((d0 // 2 + 3) // 4, "(d0 + 6) floordiv 8"),
        ((d0 // 3 + d1 // 3) // 4, "(d0 floordiv 3 + d1 floordiv 3) floordiv 4"),
        ((d0 + d1 // 6) // 7 * 14 + (d0 + d1 // 6) % 7 * 2, "d0 * 2 + (d1 floordiv 6) * 2"),
        (((d0 + s0 * 8 + d1 % 6) % 12) % 3, "(d0 + d1 + s0 * 8) mod 3"),
    ],
)
def test_forms(expr: Expr, text: str) -> None:
    assert repr(simplify(expr, DIMS, SYMS)) == text


def test_forms_in_the_docs() -> None:
    page = (Path(__file__).parents[3] / "docs" / "understand" / "indexing.md").read_text()
    rows = re.findall(r"^\| `([^`]*d0[^`]*)` \| `([^`]*)` \|$", page, re.M)
    assert len(rows) == 5
    for before, after in rows:
        domain = "d0 in [0, 15], d1 in [0, 31], d2 in [0, 2], s0 in [0, 3]"
        m = parse_map(f"(d0, d1, d2)[s0] -> ({before}), domain: {domain}").simplify()
        assert format_map(m) == f"(d0, d1, d2)[s0] -> ({after}), domain: {domain}"


def test_one_value_variable_is_a_constant() -> None:
    assert simplify(d0 * 4 + d1, ((2, 2), (0, 3))) is d1 + 8


def test_range_of() -> None:
    s = Simplifier(DIMS, SYMS)
    assert s.range_of(d0 * 4 + s0) == (0, 63)
    assert s.range_of(d0 * -4 + s0) == (-60, 3)
    assert s.range_of(d1 % 8) == (0, 7)
    assert s.range_of((d1 + 64) % 32) == (0, 31)
    assert s.range_of(d1 // 5) == (0, 6)


def _digit(a: Expr, b: Expr, c: int, k: int) -> Expr:
    return a * k - a // c * (c * k) + b


# what is left beside one remainder is another
@example(_digit(_digit(d0, d0, 2, -2), _digit(d0, d1, 2, -1), 3, 1), (0, 2), (0, 0), (0, 0))
@settings(max_examples=400)
@given(expressions(), ranges(), ranges(), ranges(4))
def test_random(e: Expr, a: Range, b: Range, c: Range) -> None:
    dims, syms = (a, b), (c,)
    s = Simplifier(dims, syms)
    f = s.simplify(e)
    lo, hi = s.range_of(f)
    at = grid(IndexingMap([], dims, syms))
    value = np.broadcast_to(e.evaluate(*at), at[0][0].shape)
    np.testing.assert_array_equal(np.broadcast_to(f.evaluate(*at), value.shape), value)
    assert lo <= value.min() and value.max() <= hi
    assert Simplifier(dims, syms).simplify(f) is f
