"""A page as Markdown, in GitHub's form: tables, and long texts that open by a click."""

from __future__ import annotations

import re
from html import escape

from heron.report.document import Block, Page, Table, Text

#: characters that mean something to Markdown within a line; an underscore does at the end of a word only
_SPECIAL = re.compile(r"[\\`*\[\]<>|#]|\b_|_\b|(?<!\w)_")


def markdown(page: Page) -> str:
    """The whole page, with one newline at its end."""
    parts = [f"# {plain(page.title)}"]
    for section in page.sections:
        parts.append(f"## {plain(section.title)}")
        parts += [_block(b) for b in section.blocks]
    return "\n\n".join(parts) + "\n"


def plain(text: str) -> str:
    """`text` in one line, such that no character of it is taken for Markdown or HTML."""
    return _SPECIAL.sub(r"\\\g<0>", " ".join(text.split())).replace("&", "&amp;")


def table(t: Table) -> str:
    """A table of pipes; numbers are right-aligned."""
    head = "| " + " | ".join(plain(c.name) for c in t.columns) + " |"
    rule = "|" + "|".join("---:" if c.is_number else "---" for c in t.columns) + "|"
    rows = ["| " + " | ".join(plain(cell) for cell in row) + " |" for row in t.rows]
    return "\n".join([head, rule, *rows]) + (f"\n\n{plain(t.rest)}" if t.rest else "")


def _block(b: Block) -> str:
    if isinstance(b, Table):
        return table(b)
    if isinstance(b, Text):
        fence = "```"
        while fence in b.text:
            fence += "`"
        body = f"{fence}{b.language}\n{b.text.rstrip()}\n{fence}"
        return f"<details><summary>{escape(b.title)}</summary>\n\n{body}\n\n</details>"
    return plain(b)
