"""The text of maps: printed, parsed back, and every kind of damage located."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heron.analysis.indexing import Dim, IndexingMap, Sym, Var, format_map, parse_map
from heron.errors import HeronError, Span

from .strategies import maps

TEXTS = [
    "(d0, d1)[s0] -> (d0 * 4 + s0, d1), domain: d0 in [0, 15], d1 in [0, 3], s0 in [0, 3], d0 * 4 + s0 in [0, 60]",
    "(th_x, bl_x)[s0]{rt0} -> (bl_x * 128 + th_x - s0, rt0), "
    "domain: th_x in [0, 127], bl_x in [0, 7], s0 in [0, 3], rt0 in [0, 9]",
    "(th_x)[s0, vector_index, s2] -> (vector_index + s2), "
    "domain: th_x in [0, 1], s0 in [0, 1], vector_index in [0, 3], s2 in [0, 1]",
    "(d1, d0){rt1, rt0} -> (d0 - rt0), domain: d1 in [0, 1], d0 in [0, 2], rt1 in [0, 3], rt0 in [0, 4]",
    "(d0) -> ((d0 floordiv 8) mod 3, -d0, d0 * -2 - 5, (-d0) mod 2), domain: d0 in [-3, 99]",
    "(d0, d1) -> (d0 - d1 * 3, d0 - (d1 + 1) * 3, d0 - (d1 + 1), d0 - d1 mod 3), domain: d0 in [0, 9], d1 in [0, 9]",
    "(d0)[s0] -> (), domain: d0 in [0, 99], s0 in [0, 9], (d0 + 1) mod 5 in [1, 1], d0 + s0 in [0, 45], "
    "d0 mod 4 in [0, 0]",
    "(bl_x) -> (bl_x floordiv 100663296), domain: bl_x in [-9223372036854775808, 9223372036854775807]",
    "() -> ()",
    "() -> (7, -7)",
    "(d0)[s0] -> (), domain: d0 in [0, 1], s0 in [0, 1]",
    "(d0) -> KNOWN EMPTY(2)",
    "(th_x)[s0]{rt0} -> KNOWN EMPTY",
]


@pytest.mark.parametrize("text", TEXTS)
def test_round_trip(text: str) -> None:
    assert format_map(parse_map(text)) == text


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("(d0)->(d0/4+d0 ceildiv 4),domain:d0 in[0,9]", "(d0) -> (d0 floordiv 4 - (-d0) floordiv 4), domain: d0 in [0, 9]"),
        ("(d0) -> (2 * d0 - -1),\n  domain: d0 in [0, 9], is_simplified: true", "(d0) -> (d0 * 2 + 1), domain: d0 in [0, 9]"),
        ("(d0) -> (d0), domain: d0 in [1, 0]", "(d0) -> KNOWN EMPTY(1)"),
        ("(d0) -> (d0), domain: d0 in [0, 5], 3 in [4, 9]", "(d0) -> KNOWN EMPTY(1)"),
        ("(d0)[s0] -> (d0), domain: s0 in [0, 2], d0 in [0, 5], s0 in [0, 1]",
         "(d0)[s0] -> (d0), domain: d0 in [0, 5], s0 in [0, 2], s0 in [0, 1]"),
    ],
)  # fmt: skip
def test_other_spellings(text: str, same: str) -> None:
    assert format_map(parse_map(text)) == same


@pytest.mark.parametrize(
    ("text", "what", "column"),
    [
        ("(d0) -> (d1), domain: d0 in [0, 1]", "unknown variable 'd1'", 10),
        ("(d0) -> (d0)", "no range is given for d0", 13),
        ("(d0 -> (d0)", "expected ','", 5),
        ("(d0) -> (d0 floordiv d0), domain: d0 in [0, 1]", "positive constant", 22),
        ("(d0) -> (d0 mod 0), domain: d0 in [0, 1]", "positive constant", 17),
        ("(d0) -> (d0 ceildiv -2), domain: d0 in [0, 1]", "positive constant", 21),
        ("(d0) -> (d0 * d0), domain: d0 in [0, 1]", "product of two variable", 15),
        ("(d0, d0) -> (d0), domain: d0 in [0, 1]", "named twice", 10),
        ("(d0) -> (d0), domain: d0 in [0, x]", "expected an integer", 33),
        ("(d0) -> (d0), domain: d0 in [0, 9223372036854775808]", "does not fit in 64 bits", 33),
        (f"(d0) -> (d0 + 1{'0' * 5000}), domain: d0 in [0, 1]", "does not fit in 64 bits", 15),
        ("(d0) -> (d0), domain: d0 in [0, 1] ?", "unexpected character", 36),
        ("(d0) -> (d0), domain: d0 in [0, 1] d0", "unexpected text after the map", 36),
        ("(mod) -> (mod), domain: mod in [0, 1]", "expected a variable name", 2),
        ("(d0) -> KNOWN EMPTY(99999)", "expected a number of results", 21),
        ("(d0) -> (d0), domain: d0 in [0, 1], is_simplified: 1", "expected 'true' or 'false'", 52),
        ("(d0) -> (" + "(" * 100_000, "more than 100 operations", 110),
        ("(d0) -> (" + "d0 + " * 100_000 + "d0), domain: d0 in [0, 1]", "more than 100 operations", 515),
        ("(d0) -> (" + "-" * 100_000, "more than 100 operations", 110),
        ("(d0) -> (d0", "expected ','", 12),
        ("", "expected '('", 1),
    ],
)
def test_bad_text(text: str, what: str, column: int) -> None:
    with pytest.raises(HeronError, match="GEN105") as caught:
        parse_map(text)
    assert what in str(caught.value)
    assert isinstance(caught.value.where, Span)
    assert caught.value.where.column == column


def test_place_is_a_line_of_the_text() -> None:
    with pytest.raises(HeronError) as caught:
        parse_map("(d0)\n  -> (d0),\n  domain: d9 in [0, 1]")
    place = caught.value.where
    assert isinstance(place, Span)
    assert (place.line, place.column, place.length, place.text) == (3, 11, 2, "  domain: d9 in [0, 1]")


def test_names_are_kept_where_they_are_not_the_default() -> None:
    m = IndexingMap([Dim(0) + Sym(0)], [Var(0, 3, "th_x")], [Var(0, 1)])
    assert parse_map(format_map(m)) == m
    assert parse_map("(s0)[d0] -> (s0), domain: s0 in [0, 1], d0 in [0, 1]").dims[0].name == "s0"


@settings(max_examples=100)
@given(maps())
def test_any_map_is_read_back(m: IndexingMap) -> None:
    read = parse_map(format_map(m))
    assert parse_map(format_map(read)) == read
    s = m.simplify()
    assert read.simplify() == s
    assert parse_map(format_map(s)) == s


@settings(max_examples=150)
@given(st.sampled_from(TEXTS), st.data())
def test_damaged_text(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text) - 1))
    damaged = (
        text[:at]
        + data.draw(st.sampled_from(["", "(", ")", "]", "-", "0", "d0", ",", "/", "\n", "é", "²"]))
        + text[at + 1 :]
    )
    try:
        found = parse_map(damaged)
    except HeronError as error:
        assert error.code == "GEN105"
    else:
        assert format_map(parse_map(format_map(found))) == format_map(found)
