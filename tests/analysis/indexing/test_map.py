"""Indexing maps: composition, simplification, domains, text."""

from __future__ import annotations

import numpy as np
import pytest

from heron.analysis.indexing import Const, Dim, IndexingMap, Sym, Var, compose, format_map, parse_map
from heron.analysis.indexing.variables import remove_unused
from heron.errors import HeronError

d0, d1, s0, s1 = Dim(0), Dim(1), Sym(0), Sym(1)


def test_compose_and_simplify() -> None:
    # a [16, 24] tensor reshaped to [384], then to [8, 48]: element (i, j) is read at …
    flatten = IndexingMap.from_sizes([d0 // 24, d0 % 24], [384])
    widen = IndexingMap.from_sizes([d0 * 48 + d1], [8, 48])
    m = compose(widen, flatten).simplify()
    assert m == parse_map("(d0, d1) -> (d0 * 2 + d1 floordiv 24, d1 mod 24), domain: d0 in [0, 7], d1 in [0, 47]")
    assert flatten.compose(widen).simplify() == m


def test_compose_symbols_and_constraints() -> None:
    reduce = IndexingMap.from_sizes([d0, s0], [4], [10])
    pad = IndexingMap([d0, d1 - 2], [(0, 3), (2, 7)])  # the padded tensor has 10 columns, 6 are data
    m = compose(reduce, pad).simplify()
    assert m == parse_map("(d0)[s0] -> (d0, s0 - 2), domain: d0 in [0, 3], s0 in [2, 7]")


def test_compose_keeps_both_maps_symbols() -> None:
    first = IndexingMap([d0, s0], [(0, 3)], [(0, 9)], (), [])
    second = IndexingMap([d0 + s0, d1 + Sym(1)], [(0, 3), (0, 9)], [(0, 1)], (), [(0, 5)])
    m = compose(first, second)
    assert m == IndexingMap([d0 + s0, s1 + Sym(2)], [(0, 3)], [(0, 1), (0, 9)], m.constraints, [(0, 5)])
    point = m.evaluate([2], [1, 7], [3])
    assert point == (3, 10)


def test_composition_agrees_with_evaluation() -> None:
    a = IndexingMap([d0 * 4 + s0, (d0 + s0) % 5], [(0, 5)], [(0, 3)], [(d0 + s0, 1, 6)])
    b = IndexingMap([d0 // 3 + s0, d1 * 2], [(0, 20), (0, 3)], [(0, 1)])
    m = compose(a, b)
    s = m.simplify()
    for (i,), (t, j) in IndexingMap([], [(0, 5)], [(0, 1), (0, 3)]).points():
        inside = a.contains([i], [j]) and b.contains(a.evaluate([i], [j]), [t])
        assert m.contains([i], [t, j]) == inside == s.contains([i], [t, j])
        if inside:
            assert s.evaluate([i], [t, j]) == b.evaluate(a.evaluate([i], [j]), [t])


def test_simplify_tightens_ranges() -> None:
    m = IndexingMap([d0], [(0, 99)], [(0, 9)], [(d0 * 4 + 3, 0, 41), (s0 // 2, 1, 3), (d0 + s0, -5, 500)])
    assert format_map(m.simplify()) == "(d0)[s0] -> (d0), domain: d0 in [0, 9], s0 in [2, 7]"
    assert m.simplify() is m.simplify().simplify()


def test_simplify_with_given_dimensions() -> None:
    m = IndexingMap([d0], [(0, 99)], [(0, 9)], [(d0 * 4 + 3, 0, 41), (s0 // 2, 1, 3)])
    text = "(d0)[s0] -> (d0), domain: d0 in [0, 99], s0 in [2, 7], d0 in [0, 9]"
    assert format_map(m.simplify(keep_dims=True)) == text
    assert parse_map(text) == m.simplify(keep_dims=True)


def test_known_empty() -> None:
    m = IndexingMap([d0, d0], [(0, 3)], (), [(d0, 4, 9)]).simplify()
    assert m.is_known_empty
    assert not list(m.points())
    assert format_map(m) == "(d0) -> KNOWN EMPTY(2)"
    assert parse_map(format_map(m)) == m


def test_identity_and_unused_symbols() -> None:
    assert IndexingMap.identity([3, 4]).is_identity
    assert not IndexingMap.from_sizes([d1, d0], [3, 4]).is_identity
    m = IndexingMap([d0 + s1], [(0, 1)], [(0, 1), (0, 2), (0, 3)], (), [Var(0, 5)])
    assert remove_unused(m) == IndexingMap([d0 + s0], [(0, 1)], [(0, 2)])


def test_evaluate_arrays() -> None:
    m = IndexingMap.from_sizes([d0 // 4, d0 % 4], [12])
    rows, columns = m.evaluate([np.arange(12)])
    np.testing.assert_array_equal(rows * 4 + columns, np.arange(12))


def test_errors() -> None:
    with pytest.raises(HeronError, match="GEN104"):
        compose(IndexingMap.identity([3]), IndexingMap.identity([3, 3]))
    with pytest.raises(HeronError, match="GEN103"):
        next(IndexingMap([Const(0)], [], [], [], [(0, 1)]).points())
