"""Strings in quotes: what escapes stand for, and that what is quoted reads back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heron.hlo.ir.quoting import quote, unquote


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (r'"a\n\"b\""', 'a\n"b"'),
        (r'"\101\x42"', "AB"),
        (r'"\1012"', "A2"),
        (r'"\303\251"', "é"),
        (r'"\9a"', "9a"),  # no octal digit
        (r'"\²"', "²"),
        (r'"\x"', "x"),
    ],
)
def test_escapes(token: str, text: str) -> None:
    assert unquote(token) == text


@given(st.text())
def test_what_is_quoted_reads_back(text: str) -> None:
    assert unquote(quote(text)) == text


@given(st.text())
def test_any_token_is_read(text: str) -> None:
    assert isinstance(unquote(f'"{text}"'), str)
