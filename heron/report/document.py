"""A page as data: a title and sections of sentences, tables and texts. Writers turn it into Markdown or HTML."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table; numbers stand at its right edge."""

    name: str
    is_number: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells, each as text. ``rest``: a sentence about the rows that are left out."""

    columns: tuple[Column, ...]
    rows: list[tuple[str, ...]]
    rest: str = ""

    @staticmethod
    def of(*columns: str, rows: list[tuple[str, ...]], rest: str = "") -> Table:
        """A table whose columns of numbers have names that end in ``>``."""
        made = tuple(Column(name.rstrip(">"), name.endswith(">")) for name in columns)
        return Table(made, [tuple(str(cell) for cell in row) for row in rows], rest)


@dataclass(frozen=True, slots=True)
class Text:
    """A long text in a fixed-width font, closed until a reader opens it. ``title``: the line that is always shown."""

    title: str
    text: str
    language: str = ""


Block = str | Table | Text


@dataclass(slots=True)
class Section:
    """A heading with its content. ``facts``: the same as plain JSON values."""

    title: str
    blocks: list[Block] = field(default_factory=list)
    facts: Any = None


@dataclass(slots=True)
class Page:
    """A title and sections."""

    title: str
    sections: list[Section] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """The facts of each section by its title in lower case, words joined by ``_``."""
        facts = {s.title.lower().replace(" ", "_"): s.facts for s in self.sections if s.facts is not None}
        return {"title": self.title, **facts}
