"""Cursor: a place in the tokens, and what every part of the grammar is read with."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar

from heron.errors import HeronError
from heron.hlo.ir import shape as shapes
from heron.hlo.ir.quoting import end_of_dictionary, unquote
from heron.hlo.ir.shape import Shape
from heron.hlo.text import carried
from heron.hlo.text.lexer import END, INTEGER, MAX_DEPTH, WORD, Source
from heron.hlo.text.shapes import COMMENT, parse_array
from heron.hlo.text.tokens import Tokens

_T = TypeVar("_T")
_QUOTES = ('"', "'")
_OPENING = frozenset("{([")
_CLOSING = frozenset("})]")


class Cursor(Tokens):
    """Reads HLO text."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.framed = False  # whether metadata names stack frames
        self._shapes: dict[str, Shape] = {}
        self._ints: dict[str, tuple[int, ...]] = {}

    def unexpected(self, wanted: str, hint: str | None = None) -> NoReturn:
        """Raise TXT002: the next token is not what it should be."""
        token = self.tokens[self.n]
        if token == END:
            self.fail("TXT002", f"expected {wanted}, but the text ends here", hint=hint or "is the file cut off?")
        if token in _QUOTES:
            self.fail("TXT001", "a string without its closing quote")
        if len(token) > MAX_DEPTH and not token.strip("({["):
            self._too_deep()
        if token[:2] == "/*":
            self.fail("TXT001", "a comment without its end")
        shown = token if len(token) <= 40 else token[:37] + "..."
        self.fail("TXT002", f"expected {wanted}, found '{shown}'", hint=hint)

    # -- single tokens -----------------------------------------------------------------------------------------------
    def word(self, wanted: str) -> str:
        """A bare word."""
        token = self.tokens[self.n]
        if not WORD.fullmatch(token):
            self.unexpected(wanted)
        self.n += 1
        return token

    def name(self, wanted: str = "a name") -> str:
        """A name, with or without its ``%``."""
        token = self.word(wanted)
        return token[1:] if token[0] == "%" else token

    def integer(self, wanted: str = "an integer") -> int:
        """An integer of 64 bits."""
        token = self.tokens[self.n]
        if not INTEGER.fullmatch(token):
            if token.lstrip("-").isdecimal():
                self.fail("TXT010", "this number does not fit in 64 bits")
            self.unexpected(wanted)
        value = int(token)
        if not -(2**63) <= value < 2**64:
            self.fail("TXT010", "this number does not fit in 64 bits")
        self.n += 1
        return value

    def number(self) -> float:
        """A floating-point number."""
        token = self.tokens[self.n]
        try:
            value = float(token)
        except ValueError:
            self.unexpected("a number")
        self.n += 1
        return value

    def boolean(self) -> bool:
        """``true`` or ``false``."""
        token = self.tokens[self.n]
        if token not in ("true", "false"):
            self.unexpected("true or false")
        self.n += 1
        return token == "true"

    def string(self) -> str:
        """A quoted string, without quotes and escapes."""
        token = self.tokens[self.n]
        if token[:1] not in _QUOTES or len(token) < 2:
            self.unexpected("a string in double quotes")
        self.n += 1
        return unquote(token)

    # -- groups of tokens --------------------------------------------------------------------------------------------
    def ints(self) -> tuple[int, ...]:
        """Integers in braces."""
        token = self.tokens[self.n]
        found = self._ints.get(token)
        if found is None:
            found = self._parse_ints(token)
        self.n += 1
        return found

    def _parse_ints(self, token: str) -> tuple[int, ...]:
        if token[:1] != "{" or token == "{":
            self.unexpected("integers in braces, such as {0,1}")
        inner = (COMMENT.sub("", token) if "/*" in token else token)[1:-1].strip()
        values: list[int] = []
        for part in inner.split(",") if inner else ():
            part = part.strip()
            if not INTEGER.fullmatch(part) or not -(2**63) <= int(part) < 2**63:
                self.fail("TXT010", f"'{part[:40]}' is not a 64-bit integer", why=f"in the list {token[:60]}")
            values.append(int(part))
        found = self._ints[token] = tuple(values)
        return found

    def braced(self, one: Callable[[], _T]) -> tuple[_T, ...]:
        """Items in braces, separated by commas."""
        token = self.tokens[self.n]
        if token[:1] == "{" and token != "{" and not token[1:-1].strip():
            self.n += 1
            return ()
        self.expect("{")
        found = [one()]
        while self.accept(","):
            found.append(one())
        self.expect("}")
        return tuple(found)

    def raw(self) -> str:
        """A value kept as text: balanced brackets, else everything up to a comma, a closing brace or the line's end.

        The devices of a mesh belong to it: ``mesh['x'=2], device_ids=(1,0) {'x'}``.
        """
        first, depth, tokens = self.n, 0, self.tokens
        in_braces = tokens[first][:1] == "{"
        while True:
            token = tokens[self.n]
            if token == END:
                self.unexpected("the end of this value")
            if token in _OPENING:
                depth += 1
            elif token in _CLOSING:
                if depth == 0:
                    break
                depth -= 1
            elif token == "," and depth == 0 and tokens[self.n + 1] != "device_ids":
                break
            self.n += 1
            if depth == 0 and (in_braces or self.source.new_line_before(self.n)):
                break
        if self.n == first:
            self.unexpected("a value")
        return self.source.slice(first, self.n - 1)

    def dictionary(self) -> str:
        """A dictionary in braces, kept as text. Its content need not be tokens of HLO."""
        start = self.source.start(self.n)
        end = end_of_dictionary(self.source.text, start)
        if end < 0:
            self.fail("TXT002", "expected the end of this dictionary", hint="a brace or a quote in it is not closed")
        self.source.join(self.n, end)
        self.n += 1
        return self.source.text[start:end]

    def carried(self, name: str) -> str | None:
        """A value kept as text, as XLA prints it."""
        first = self.n
        text = self.raw()
        try:
            return carried.normal(name, text)
        except HeronError as error:
            span = self.source.span(first, self.n - 1)
            raise HeronError(error.code, error.what, where=span, why=error.why, hint=error.hint) from None

    def shape(self) -> Shape:
        """A shape; arrays without a layout get the default one."""
        token = self.tokens[self.n]
        found = self._shapes.get(token)
        if found is not None:
            self.n += 1
            return found
        if token == "(":
            return self._tuple_shape()
        if self.at_buffer():
            return self._buffer_shape()
        if "[" not in token:
            self.unexpected("a shape", hint="shapes look like f32[2,3] or (s32[], f32[4]{0})")
        try:
            found = self._shapes[token] = parse_array(token)
        except HeronError as error:
            raise error.located(self.source.span(self.n)) from None
        self.n += 1
        return found

    def at_buffer(self) -> bool:
        """Whether the shape of a buffer begins here: ``b(f32[2])``."""
        return self.tokens[self.n] == "b" and self.tokens[self.n + 1] == "("

    def _buffer_shape(self) -> Shape:
        self.n += 2
        at = self.n
        content = self.shape()
        if not content.is_array:
            self.fail("TXT013", "a buffer is memory for an array", at, why=f"found {content}")
        self.expect(")")
        return shapes.buffer(content)

    def _tuple_shape(self) -> Shape:
        self.enter()
        self.n += 1
        parts: list[Shape] = []
        while not self.accept(")"):
            if parts:
                self.expect(",")
            parts.append(self.shape())
        self.depth -= 1
        return shapes.tuple_(parts)

    def enter(self) -> None:
        """Go one level deeper. Raises TXT012 when that is too deep."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self._too_deep()

    def _too_deep(self) -> NoReturn:
        self.fail("TXT012", "this is nested too deeply", why=f"the limit is {MAX_DEPTH} levels")
