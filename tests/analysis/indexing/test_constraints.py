"""Domains: constraints are normalised, merged and used; the points of a map and their values stay the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from heron.analysis.indexing import IndexingMap, format_map, parse_map
from heron.analysis.indexing.constraints import simplify_map
from heron.errors import HeronError

from .strategies import grid, inside, maps


@pytest.mark.parametrize(
    ("text", "want"),
    [
        # constants, factors and divisions leave a constraint
        ("(d0) -> (d0), domain: d0 in [0, 50], d0 * 5 in [12, 43]", "(d0) -> (d0), domain: d0 in [3, 8]"),
        ("(d0) -> (d0), domain: d0 in [-50, 50], d0 * -5 in [-43, -12]", "(d0) -> (d0), domain: d0 in [3, 8]"),
        ("(d0) -> (d0), domain: d0 in [-50, 50], d0 floordiv 6 in [-2, 1]", "(d0) -> (d0), domain: d0 in [-12, 11]"),
        (
            "(d0) -> (d0), domain: d0 in [0, 50], d0 mod 9 + 4 in [6, 9]",
            "(d0) -> (d0), domain: d0 in [2, 50], d0 mod 9 in [2, 5]",
        ),
        (
            "(d0)[s0] -> (d0), domain: d0 in [0, 50], s0 in [0, 50], d0 * -4 + s0 * 6 in [-7, 9]",
            "(d0)[s0] -> (d0), domain: d0 in [0, 50], s0 in [0, 34], d0 * 2 - s0 * 3 in [-4, 3]",
        ),
        # sums bound their variables
        (
            "(d0)[s0] -> (d0 * 10 + s0), domain: d0 in [0, 999], s0 in [0, 9], d0 * 10 + s0 in [0, 419]",
            "(d0)[s0] -> (d0 * 10 + s0), domain: d0 in [0, 41], s0 in [0, 9]",
        ),
        (
            "(d0)[s0] -> (d0 * 10 + s0), domain: d0 in [0, 999], s0 in [0, 9], d0 * 10 + s0 in [25, 417]",
            "(d0)[s0] -> (d0 * 10 + s0), domain: d0 in [2, 41], s0 in [0, 9], d0 * 10 + s0 in [25, 417]",
        ),
        # residues move the ends of ranges, and two of one expression become one
        (
            "(d0) -> (d0), domain: d0 in [1, 99], d0 mod 4 in [2, 2], d0 mod 6 in [4, 4]",
            "(d0) -> (d0), domain: d0 in [10, 94], d0 mod 12 in [10, 10]",
        ),
        ("(d0) -> (d0), domain: d0 in [0, 99], d0 mod 4 in [2, 2], d0 mod 6 in [1, 1]", "(d0) -> KNOWN EMPTY(1)"),
        ("(d0) -> (d0), domain: d0 in [8, 14], d0 mod 8 in [7, 7]", "(d0) -> KNOWN EMPTY(1)"),
        ("(d0) -> (d0), domain: d0 in [8, 15], d0 mod 8 in [7, 7]", "(d0) -> (15), domain: d0 in [15, 15]"),
        # a known residue is used by the other constraints and by the results
        (
            "(d0)[s0] -> ((d0 - s0) floordiv 3), domain: d0 in [0, 20], s0 in [0, 20], (d0 - s0) mod 3 in [1, 1], "
            "((d0 - s0) floordiv 3) * 3 + s0 in [2, 30]",
            "(d0)[s0] -> ((d0 - s0) floordiv 3), domain: d0 in [3, 20], s0 in [0, 20], (d0 - s0) mod 3 in [1, 1]",
        ),
        (
            "(d0) -> ((d0 floordiv 4) * 8 + 1), domain: d0 in [0, 99], d0 mod 4 in [3, 3]",
            "(d0) -> (d0 * 2 - 5), domain: d0 in [3, 99], d0 mod 4 in [3, 3]",
        ),
        (
            "(d0) -> (d0), domain: d0 in [3, 51], d0 mod 9 in [2, 5]",
            "(d0) -> (d0), domain: d0 in [3, 50], d0 mod 9 in [2, 5]",
        ),
        # two bounds on one expression, spelled differently
        (
            "(d0, d1) -> (), domain: d0 in [0, 9], d1 in [0, 9], d0 - d1 in [-2, 9], d1 - d0 in [-9, 1]",
            "(d0, d1) -> (), domain: d0 in [0, 9], d1 in [0, 9], d0 - d1 in [-1, 9]",
        ),
        ("(d0, d1) -> (), domain: d0 in [0, 9], d1 in [0, 9], d0 - d1 in [3, 9], d1 - d0 in [0, 9]",
         "(d0, d1) -> KNOWN EMPTY"),
        # what is bounded sharpens the results
        (
            "(d0, d1) -> ((d0 * 30 + d1) mod 60), domain: d0 in [0, 4], d1 in [0, 29], d0 * 30 + d1 in [60, 119]",
            "(d0, d1) -> (d0 * 30 + d1 - 60), domain: d0 in [2, 3], d1 in [0, 29]",
        ),
        (
            "(d0, d1) -> ((d0 + d1) floordiv 4), domain: d0 in [0, 9], d1 in [0, 9], d0 + d1 in [4, 7]",
            "(d0, d1) -> (1), domain: d0 in [0, 7], d1 in [0, 7], d0 + d1 in [4, 7]",
        ),
        (
            "(d0, d1) -> ((d0 * 2 + d1 * 2 + 1) mod 16), domain: d0 in [0, 9], d1 in [0, 9], d0 + d1 in [2, 7]",
            "(d0, d1) -> (d0 * 2 + d1 * 2 + 1), domain: d0 in [0, 7], d1 in [0, 7], d0 + d1 in [2, 7]",
        ),
        (
            "(d0) -> (d0 mod 8 + d0), domain: d0 in [0, 99], d0 mod 8 in [3, 3]",
            "(d0) -> (d0 + 3), domain: d0 in [3, 99], d0 mod 8 in [3, 3]",
        ),
    ],
)  # fmt: skip
def test_forms(text: str, want: str) -> None:
    m = parse_map(text).simplify()
    assert format_map(m) == want
    assert simplify_map.__wrapped__(m) == m


def test_slow_contradictions_end() -> None:
    """Each round of tightening takes one value off ranges of a thousand million; only a few rounds are made."""
    text = (
        "(d0, d1, d2) -> (d0), domain: d0 in [0, 999999999], d1 in [0, 999999999], d2 in [0, 999999999], "
        "d0 - d1 in [1, 999999999], d1 - d2 in [1, 999999999], d0 - d2 in [-999999999, 0]"
    )
    assert not parse_map(text).simplify().is_known_empty


@pytest.mark.parametrize(
    ("expr", "what"),
    [
        ("(d0 * 4611686018427387904 + 1) floordiv 31", "[1, 36893488147419103233]"),
        ("d0 * 4611686018427387904 * -4", "[-147573952589676412928, 0]"),
        ("d0 + 9223372036854775800", "[9223372036854775800, 9223372036854775808]"),
    ],
)
def test_overflow(expr: str, what: str) -> None:
    with pytest.raises(HeronError, match="GEN106") as caught:
        parse_map(f"(d0) -> ({expr}), domain: d0 in [0, 8]").simplify()
    assert what in str(caught.value)
    m = parse_map("(d0) -> ((d0 * 4611686018427387904) floordiv 4611686018427387904), domain: d0 in [0, 8]")
    assert m.simplify().is_identity


def test_result_ranges() -> None:
    m = parse_map(
        "(d0, d1) -> ((d0 * 70 + d1) floordiv 32, d1 - d0), domain: d0 in [0, 9], d1 in [0, 69], d0 * 70 + d1 in [0, 511]"
    )
    assert m.result_ranges == ((0, 15), (-9, 69))
    assert m.replace(constraints=()).result_ranges == ((0, 21), (-9, 69))
    m = parse_map("(d0, d1) -> ((d0 + d1) floordiv 2), domain: d0 in [0, 9], d1 in [0, 1], d0 - d0 + d1 in [0, 5]")
    assert m.result_ranges == ((0, 5),)
    m = parse_map(
        "(d0, d1) -> (d0 * 3 + d1 * 3 + 1, 5 - d0 * 2 - d1 * 2), domain: d0 in [0, 9], d1 in [0, 9], d0 + d1 in [2, 7]"
    )
    assert m.result_ranges == ((7, 22), (-9, 1))


@settings(max_examples=300)
@given(maps())
def test_points_and_values_stay(m: IndexingMap) -> None:
    dims, syms = grid(m)
    holds = inside(m, dims, syms)
    for keep_dims in (False, True):
        s = m.simplify(keep_dims)
        if s.is_known_empty:
            assert not holds.any()
            continue
        assert s.dims == m.dims or not keep_dims
        np.testing.assert_array_equal(inside(s, dims, syms), holds)
        for before, after, (lo, hi) in zip(m.results, s.results, s.result_ranges, strict=True):
            old = np.broadcast_to(before.evaluate(dims, syms), holds.shape)[holds]
            new = np.broadcast_to(after.evaluate(dims, syms), holds.shape)[holds]
            np.testing.assert_array_equal(old, new)
            assert not holds.any() or (lo <= new.min() and new.max() <= hi)
        assert simplify_map.__wrapped__(s, keep_dims) == s
        assert parse_map(format_map(s)) == s
