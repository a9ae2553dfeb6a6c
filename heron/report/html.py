"""A page as one HTML file without scripts, and single tables for notebooks. Every text is escaped."""

from __future__ import annotations

from html import escape

from heron.report.document import Block, Page, Table, Text

_STYLE = """
.heron{font:14px/1.5 system-ui,sans-serif;color:#1d1d1f;background:#fff}
.heron table{border-collapse:collapse;margin:.6em 0;font-size:13px}
.heron th,.heron td{padding:.2em .8em;text-align:left;border-bottom:1px solid #d8dbe0;vertical-align:top}
.heron .n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.heron pre{font:12px/1.4 ui-monospace,monospace;overflow:auto;max-height:40em;padding:.6em;background:#f5f6f8}
.heron summary{cursor:pointer}
.heron .rest{color:#5b616b}
@media (prefers-color-scheme:dark){.heron{color:#e6e6e8;background:#17181b}
.heron th,.heron td{border-color:#3a3d43}.heron pre{background:#202226}.heron .rest{color:#a4aab4}}
"""
_PAGE_STYLE = "body{margin:0}main.heron{max-width:70em;margin:0 auto;padding:1.5em 2em 4em;min-height:100vh}"


def html(page: Page) -> str:
    """The whole page; it needs no other file and no network."""
    sections = "\n".join(
        f'<section id="{_anchor(s.title)}"><h2>{escape(s.title)}</h2>\n'
        + "\n".join(map(_block, s.blocks))
        + "</section>"
        for s in page.sections
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(page.title)}</title><style>{_PAGE_STYLE}{_STYLE}</style></head>\n"
        f'<body><main class="heron"><h1>{escape(page.title)}</h1>\n{sections}\n</main></body></html>\n'
    )


def fragment(*blocks: Block) -> str:
    """Sentences, tables and texts as a piece of a page that has its own style, such as a notebook's cell."""
    return f'<div class="heron"><style>{_STYLE}</style>' + "\n".join(map(_block, blocks)) + "</div>"


def _block(b: Block) -> str:
    if isinstance(b, Table):
        return _table(b)
    if isinstance(b, Text):
        return f"<details><summary>{escape(b.title)}</summary><pre>{escape(b.text)}</pre></details>"
    return f"<p>{escape(b)}</p>"


def _table(t: Table) -> str:
    marks = [' class="n"' if c.is_number else "" for c in t.columns]
    head = "".join(f"<th{m}>{escape(c.name)}</th>" for m, c in zip(marks, t.columns, strict=True))
    rows = "\n".join(
        "<tr>" + "".join(f"<td{m}>{escape(cell)}</td>" for m, cell in zip(marks, row, strict=True)) + "</tr>"
        for row in t.rows
    )
    rest = f'<p class="rest">{escape(t.rest)}</p>' if t.rest else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{rows}</tbody></table>{rest}"


def _anchor(title: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in title.lower())
