"""Inverses of maps, and changes of their variables, against listing every point."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from heron.analysis.indexing import Dim, IndexingMap, Sym, format_map, parse_map
from heron.analysis.indexing.hlo_maps import reshape_index
from heron.analysis.indexing.inverse import inverse
from heron.analysis.indexing.variables import eliminate_symbols, remove_unused, symbols_to_dims
from heron.errors import HeronError

from .points import points
from .strategies import maps

d0, d1, s0, s1 = Dim(0), Dim(1), Sym(0), Sym(1)


def pairs(m: IndexingMap) -> set[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Every (point, result) of a map."""
    dims, syms = points(m)
    values = [*dims, *syms]
    if not values:
        return {((), m.evaluate())} if m.contains() else set()
    results = [np.broadcast_to(r.evaluate(dims, syms), values[0].shape) for r in m.results]
    return {
        (tuple(int(v[k]) for v in values), tuple(int(r[k]) for r in results)) for k in range(len(values[0]))
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("(d0, d1) -> (d1, d0), domain: d0 in [0, 3], d1 in [0, 6]", "(d0, d1) -> (d1, d0), domain: d0 in [0, 6], d1 in [0, 3]"),
        ("(d0, d1) -> (d0 * 7 + d1), domain: d0 in [0, 3], d1 in [0, 6]", "(d0) -> (d0 floordiv 7, d0 mod 7), domain: d0 in [0, 27]"),
        ("(d0) -> (d0 floordiv 24, (d0 floordiv 3) mod 8, d0 mod 3), domain: d0 in [0, 47]",
         "(d0, d1, d2) -> (d0 * 24 + d1 * 3 + d2), domain: d0 in [0, 1], d1 in [0, 7], d2 in [0, 2]"),
        ("(d0, d1) -> ((d0 * 9 + d1) floordiv 4, (d0 * 9 + d1) mod 4), domain: d0 in [0, 3], d1 in [0, 8]",
         "(d0, d1) -> ((d0 * 4 + d1) floordiv 9, (d0 * 4 + d1) mod 9), domain: d0 in [0, 8], d1 in [0, 3]"),
        # a reversal, a slice, rows with gaps, a diagonal, a point
        ("(d0) -> (9 - d0), domain: d0 in [2, 9]", "(d0) -> (-d0 + 9), domain: d0 in [0, 7]"),
        ("(d0) -> (d0 * 3 + 1), domain: d0 in [0, 3]",
         "(d0) -> ((d0 + 2) floordiv 3 - 1), domain: d0 in [1, 10], (d0 + 2) mod 3 in [0, 0]"),
        ("(d0, d1) -> (d0 * 8 + d1), domain: d0 in [0, 3], d1 in [0, 4]",
         "(d0) -> (d0 floordiv 8, d0 mod 8), domain: d0 in [0, 28], d0 mod 8 in [0, 4]"),
        ("(d0) -> (d0, d0), domain: d0 in [0, 7]",
         "(d0, d1) -> (d0), domain: d0 in [0, 7], d1 in [0, 7], d0 - d1 in [0, 0]"),
        ("(d0) -> (5), domain: d0 in [3, 3]", "(d0) -> (3), domain: d0 in [5, 5]"),
        # symbols come back too, and runtime variables are offsets
        ("(d0)[s0] -> (s0, d0 + 2), domain: d0 in [0, 4], s0 in [0, 2]",
         "(d0, d1) -> (d1 - 2, d0), domain: d0 in [0, 2], d1 in [2, 6]"),
        ("(d0){rt0} -> (d0 + rt0), domain: d0 in [0, 4], rt0 in [0, 2]",
         "(d0){rt0} -> (d0 - rt0), domain: d0 in [0, 6], rt0 in [0, 2], d0 - rt0 in [0, 4]"),
        ("(d0) -> (d0 - 2), domain: d0 in [2, 7], d0 mod 2 in [0, 0]", "(d0) -> (d0 + 2), domain: d0 in [0, 4], d0 mod 2 in [0, 0]"),
        ("(d0) -> (d0, 0), domain: d0 in [4, 3]", "(d0, d1) -> KNOWN EMPTY(1)"),
        # not one to one
        ("(d0, d1) -> (d0), domain: d0 in [0, 4], d1 in [0, 1]", None),
        ("(d0, d1) -> (d0 + d1), domain: d0 in [0, 4], d1 in [0, 1]", None),
        ("(d0) -> (d0 floordiv 2), domain: d0 in [0, 4]", None),
        ("(d0) -> (d0 floordiv 4, d0 mod 2), domain: d0 in [0, 7]", None),
    ],
)  # fmt: skip
def test_inverse(text: str, want: str | None) -> None:
    m = parse_map(text)
    back = inverse(m)
    if want is None:
        assert back is None
        return
    assert back is not None and format_map(back) == want
    if not m.rt_vars and not m.is_known_empty:
        assert pairs(back) == {(result, point) for point, result in pairs(m)}


@settings(max_examples=150)
@given(maps(constraints=2))
def test_inverse_is_the_way_back(m: IndexingMap) -> None:
    back = inverse(m)
    assume(back is not None)
    assert back is not None
    forward = pairs(m)
    assert pairs(back) == {(result, point) for point, result in forward}


@settings(max_examples=60)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.data())
def test_reshapes_and_transposes_have_inverses(sizes: list[int], data: st.DataObject) -> None:
    total = int(np.prod(sizes))
    divisors = [n for n in range(1, total + 1) if total % n == 0]
    rows = data.draw(st.sampled_from(divisors))
    order = data.draw(st.permutations(range(len(sizes))))
    index = reshape_index([Dim(i) for i in range(2)], (rows, total // rows), tuple(sizes[d] for d in order))
    m = IndexingMap.from_sizes([index[order.index(d)] for d in range(len(sizes))], (rows, total // rows))
    back = inverse(m)
    assert back is not None and not back.constraints
    assert m.compose(back).simplify() == IndexingMap.identity(sizes).simplify()
    assert back.compose(m).simplify() == IndexingMap.identity((rows, total // rows)).simplify()


def test_contains_arrays() -> None:
    m = parse_map("(d0)[s0] -> (d0), domain: d0 in [0, 9], s0 in [0, 1], d0 mod 4 in [1, 2]")
    np.testing.assert_array_equal(m.contains([np.arange(-1, 6)], [1]), [0, 0, 1, 1, 0, 0, 1])
    with pytest.raises(HeronError, match="GEN109"):
        m.contains([1])


@pytest.mark.parametrize(
    ("text", "symbols", "everything"),
    [
        ("(d0, d1)[s0, s1]{rt0} -> (d1 + s1), domain: d0 in [0, 1], d1 in [0, 2], s0 in [0, 3], s1 in [0, 4], rt0 in [0, 5]",
         "(d0, d1)[s0] -> (d1 + s0), domain: d0 in [0, 1], d1 in [0, 2], s0 in [0, 4]",
         "(d0)[s0] -> (d0 + s0), domain: d0 in [0, 2], s0 in [0, 4]"),
        # a constraint on unused variables alone goes; one that ties them to a used variable stays
        ("(d0)[s0, s1] -> (s1), domain: d0 in [0, 9], s0 in [0, 9], s1 in [0, 9], s0 mod 3 in [1, 1], d0 mod 4 in [2, 3]",
         "(d0)[s0] -> (s0), domain: d0 in [0, 9], s0 in [0, 9], d0 mod 4 in [2, 3]",
         "()[s0] -> (s0), domain: s0 in [0, 9]"),
        ("(d0)[s0, s1] -> (d0), domain: d0 in [0, 9], s0 in [0, 9], s1 in [0, 9], s0 + s1 in [3, 9], d0 + s0 in [0, 9]",
         "(d0)[s0, s1] -> (d0), domain: d0 in [0, 9], s0 in [0, 9], s1 in [0, 9], d0 + s0 in [0, 9], s0 + s1 in [3, 9]",
         "(d0)[s0, s1] -> (d0), domain: d0 in [0, 9], s0 in [0, 9], s1 in [0, 9], d0 + s0 in [0, 9], s0 + s1 in [3, 9]"),
        # nothing satisfies the two residues, so they must not go
        ("(d0)[s0, s1] -> (d0), domain: d0 in [0, 9], s0 in [0, 9], s1 in [0, 9], (s0 * 3 + s1 * 3) mod 4 in [2, 2], "
         "(s0 + s1) mod 4 in [1, 1]",) * 3,
    ],
)  # fmt: skip
def test_remove_unused(text: str, symbols: str, everything: str) -> None:
    m = parse_map(text)
    assert format_map(remove_unused(m)) == symbols
    assert format_map(remove_unused(m, dims=True)) == everything


def test_remove_unused_keeps_what_else_is_needed() -> None:
    m = IndexingMap.from_sizes([d0], [2], [3, 4])
    assert remove_unused(m, also=[s1 + 1]) == IndexingMap.from_sizes([d0], [2], [4])


@settings(max_examples=80)
@given(maps(results=1))
def test_remove_unused_keeps_the_elements_read(m: IndexingMap) -> None:
    read = {result for _, result in pairs(m)}
    assert {result for _, result in pairs(symbols_to_dims(remove_unused(m, dims=True)))} == read if m.results else True


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("(d0)[s0] -> (s0 * 2), domain: d0 in [0, 9], s0 in [0, 4], d0 - s0 in [2, 2]",
         "(d0) -> (d0 * 2 - 4), domain: d0 in [2, 6]"),
        ("(d0)[s0, s1] -> (s0, s1), domain: d0 in [0, 9], s0 in [0, 9], s1 in [0, 9], d0 * 3 + s1 - s0 * 2 in [1, 1]",
         "(d0)[s0] -> (s0, d0 * -3 + s0 * 2 + 1), domain: d0 in [0, 6], s0 in [0, 9], d0 * 3 - s0 * 2 in [-8, 1]"),
        ("(d0)[s0] -> (s0), domain: d0 in [0, 9], s0 in [0, 9], d0 - s0 * 2 in [0, 0]",
         "(d0)[s0] -> (s0), domain: d0 in [0, 8], s0 in [0, 4], d0 - s0 * 2 in [0, 0]"),
    ],
)  # fmt: skip
def test_eliminate_symbols(text: str, want: str) -> None:
    m = parse_map(text)
    assert format_map(eliminate_symbols(m)) == want
    n = len(m.dims)
    assert {(p[:n], r) for p, r in pairs(eliminate_symbols(m))} == {(p[:n], r) for p, r in pairs(m)}


def test_symbols_to_dims() -> None:
    m = parse_map(
        "(d0)[s0, s1]{rt0} -> (d0 + s0 * 2 + s1 * 3 + rt0 * 4), domain: d0 in [0, 1], s0 in [0, 2], s1 in [0, 3], rt0 in [0, 4]"
    )
    assert format_map(symbols_to_dims(m)) == (
        "(d0, d1, d2, d3) -> (d0 + d1 * 2 + d2 * 3 + d3 * 4), domain: d0 in [0, 1], d1 in [0, 2], d2 in [0, 3], d3 in [0, 4]"
    )
    assert format_map(symbols_to_dims(m, [1])) == (
        "(d0, d1)[s0]{rt0} -> (d0 + s0 * 2 + d1 * 3 + rt0 * 4), domain: d0 in [0, 1], d1 in [0, 3], s0 in [0, 2], rt0 in [0, 4]"
    )
