"""Pages as Markdown and HTML: tables, long texts, and hostile names that stay text."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest

from heron.report.document import Page, Section, Table, Text
from heron.report.html import fragment, html
from heron.report.markdown import markdown, plain

HOSTILE = '</pre></details><script>alert("x")</script>&amp;|`*[a](javascript:b)'


def _page() -> Page:
    table = Table.of("kernel", "time>", rows=[(HOSTILE, "3"), ("b", "4")], rest="one more")
    return Page(HOSTILE, [Section(HOSTILE, [HOSTILE, table, Text(HOSTILE, HOSTILE + "\n```\nx", "hlo")])])


class _Tags(HTMLParser):
    """Tags, and the text between them."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.mark.parametrize("text", [html(_page()), fragment(*_page().sections[0].blocks)])
def test_html_escapes_every_text(text: str) -> None:
    read = _Tags()
    read.feed(text)
    assert "script" not in read.tags
    assert HOSTILE in read.text  # in a cell, in a paragraph: whole
    assert any(t.startswith(HOSTILE + "\n```") for t in read.text)


def test_markdown_escapes_cells_and_headings() -> None:
    lines = markdown(_page()).splitlines()
    rows = [line for line in lines if line.startswith("| ")]
    assert rows[0] == "| kernel | time |"
    assert r"\<script\>" in rows[1] and r"\|\`\*\[a\](javascript:b)" in rows[1]
    assert "|---|---:|" in lines
    assert "one more" in lines


def test_markdown_fences_are_longer_than_those_inside() -> None:
    text = markdown(_page())
    assert "\n````hlo\n" in text and "\n````\n" in text


@pytest.mark.parametrize(("text", "expected"), [("a_b", "a_b"), ("_a_", r"\_a\_"), ("a  b\nc", "a b c")])
def test_plain(text: str, expected: str) -> None:
    assert plain(text) == expected


def test_facts_are_found_by_their_section() -> None:
    page = Page("t", [Section("Compile time", facts={"a": 1}), Section("No facts")])
    assert page.to_json() == {"title": "t", "compile_time": {"a": 1}}
