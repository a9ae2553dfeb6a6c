"""Lexer: HLO text to a list of token strings, by one regular expression.

A token is a plain `str`; what it is shows in its first character (and a ``[`` makes it a shape), so lexing is a single
`findall`. Positions are not kept: they are found again, by lexing once more, when an error must be shown or when an
attribute is kept as raw text. Four things come as one token because programs hold thousands of them: a shape with its
layout, a list of integers in braces, padding such as ``0_1x2_3``, and ``constant(...)`` whole.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice
from typing import ClassVar, NoReturn

from heron.errors import HeronError, Span

END = ""  # the tokens after the last
_LOOKAHEAD = 4  # how many of them there are, so that looking ahead needs no care

_LITERAL_DEPTH = 10
#: brackets that may be open at a time
MAX_DEPTH = 60


def _balanced(depth: int) -> str:
    """A pattern for text between parentheses that are nested at most `depth` deep."""
    pattern = r'[^()"]*+'
    for _ in range(depth):
        pattern = rf'(?:[^()"]++|\({pattern}\))*+'
    return pattern


#: one with blanks before or in it: digits or a colon tell it from the body of a computation
_SPACED_LAYOUT = r"\s*+\{\s*+(?=[\d:])(?:\d[\d,\s]*+)?(?::[^{}]*+)?\}"
#: one that may stand among the sizes of a shape, or among integers
_COMMENT = r"/\*(?:[^*]++|\*(?!/))*+\*/"
_SKIPPED = r"(?:\s++|//[^\n\r]*+|/\*.*?\*/)*+"
_TOKEN = (
    rf"constant\({_balanced(_LITERAL_DEPTH)}\)"
    r"|[0-9bf?]++_[0-9io?]++->[0-9bf?]++"  # convolution labels
    r"|%?[A-Za-z_](?:[\w.]|-(?!>))*+"  # a word, a name or a shape
    rf"(?:\s*+\[[\d,<=?\s]*+(?:{_COMMENT}[\d,<=?\s]*+)*+\](?:\{{[^{{}}\n]*+\}}|{_SPACED_LAYOUT})?+)?+"
    r"|%[\w.\-]++"
    r"|[({\[]{64,}+"  # more than may be open at a time
    r"|[(),=]"
    rf"|\{{[\d,\s\-]*+(?:{_COMMENT}[\d,\s\-]*+)*+\}}"  # integers
    r'|"(?:[^"\\]++|\\.)*+"'
    r"|'(?:[^'\\\n]++|\\.)*+'"
    r"|-?\d++_-?\d++(?:_-?\d++)?(?:x-?\d++_-?\d++(?:_-?\d++)?)*+"  # padding
    r"|\d++(?:x\d++)++"  # window sizes
    r"|-?\d++(?:\.\d*+)?(?:[eE][+-]?\d++)?|-(?:inf|nan)"
    r"|->|<=|/\*.*+"  # a comment that does not end is one token
    r"|[^\w\s%(){}\[\],=\"\-+:;<>/*?.]++|\S"  # what no token begins with
)
_MASTER = re.compile(rf"{_SKIPPED}({_TOKEN}|\Z)", re.DOTALL | re.ASCII)

WORD = re.compile(r"%?[A-Za-z_][\w.\-]*", re.ASCII)
INTEGER = re.compile(r"-?\d{1,19}")


class Source:
    """A text, its tokens, and where they are. ``pattern``: finds a token, its one group."""

    pattern: ClassVar[re.Pattern[str]] = _MASTER

    def __init__(self, text: str, filename: str) -> None:
        self.text, self.filename = text, filename
        self.tokens: list[str] = self.pattern.findall(text)
        self.tokens += [END] * _LOOKAHEAD
        self._starts: list[int] = []
        self._matches: Iterator[re.Match[str]] | None = None

    def start(self, n: int) -> int:
        """Offset of token `n`. The text is lexed again only as far as that: what asks is often near its beginning."""
        missing = n + 1 - len(self._starts)
        if missing > 0:
            if self._matches is None:
                self._matches = self.pattern.finditer(self.text)
            self._starts += [m.start(1) for m in islice(self._matches, missing)]
            self._starts += [len(self.text)] * (n + 1 - len(self._starts))
        return self._starts[n]

    def end(self, n: int) -> int:
        """Offset just after token `n`."""
        return self.start(n) + len(self.tokens[n])

    def slice(self, first: int, last: int) -> str:
        """The text from token `first` up to and including token `last`."""
        return self.text[self.start(first) : self.end(last)]

    def join(self, n: int, end: int) -> None:
        """Make the text from token `n` up to offset `end` one token, which may end amid another."""
        self.start(len(self.tokens) - 1)  # of all tokens, since what is behind may change
        first, starts = self.start(n), self._starts
        after = bisect_left(starts, end, n)
        if self.end(after - 1) > end:  # what follows are other tokens, then
            found = list(self.pattern.finditer(self.text, end))
            self.tokens[after:] = [m[1] for m in found] + [END] * _LOOKAHEAD
            starts[after:] = [m.start(1) for m in found] + [len(self.text)] * _LOOKAHEAD
        self.tokens[n:after] = [self.text[first:end]]
        starts[n:after] = [first]

    def new_line_before(self, n: int) -> bool:
        """Whether token `n` begins a line (the end of the text counts)."""
        return n == 0 or not self.tokens[n] or "\n" in self.text[self.end(n - 1) : self.start(n)]

    def span_at(self, offset: int, length: int) -> Span:
        """The place `length` characters long at an offset."""
        text = self.text
        if offset >= len(text):  # the end: point behind the last character
            offset = len(text.rstrip())
        line_start = text.rfind("\n", 0, offset) + 1
        line_end = text.find("\n", offset)
        line = text[line_start : line_end if line_end >= 0 else len(text)]
        number = text.count("\n", 0, offset) + 1
        column = offset - line_start + 1
        return Span(self.filename, number, column, max(min(length, len(line) - column + 1), 1), line)

    def span(self, first: int, last: int | None = None) -> Span:
        """The place of tokens `first` to `last` (by default one token)."""
        begin = self.start(first)
        return self.span_at(begin, self.end(first if last is None else last) - begin)

    def fail(self, code: str, what: str, n: int, why: str | None = None, hint: str | None = None) -> NoReturn:
        """Raise an error that underlines token `n`."""
        raise HeronError(code, what, where=self.span(n), why=why, hint=hint)
