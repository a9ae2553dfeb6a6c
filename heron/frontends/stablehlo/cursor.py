"""Cursor: a place in the tokens, with the methods that read every part of MLIR's grammar."""

from __future__ import annotations

import re
from typing import NoReturn

from heron.errors import HeronError
from heron.frontends.stablehlo import types
from heron.frontends.stablehlo.lexer import END, Source, unquote
from heron.frontends.stablehlo.syntax import Text
from heron.hlo.ir import shape as shapes
from heron.hlo.ir.shape import Shape
from heron.hlo.text.tokens import Tokens

MAX_DEPTH = 60

_OPENING = {"(": ")", "[": "]", "{": "}", "<": ">"}
_CLOSING = frozenset(_OPENING.values())
_INTEGER = re.compile(r"-?\d{1,20}|0x[0-9A-Fa-f]{1,16}")
_TOKEN_TYPES = ("!stablehlo.token", "!mhlo.token")
_TENSORS = re.compile(r"tensor<[^<>]*>")

Types = tuple[Shape, ...]


class Cursor(Tokens):
    """Reads StableHLO text."""

    source: Source

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self._shapes: dict[str, Shape] = {}
        self._signatures: dict[str, tuple[Types, Types]] = {}

    def unexpected(self, wanted: str, hint: str | None = None) -> NoReturn:
        """Raise SHLO001: the next token is not what it should be."""
        token = self.tokens[self.n]
        if token == END:
            self.fail("SHLO001", f"expected {wanted}, but the text ends here", hint=hint or "is the file cut off?")
        if token == '"':
            self.fail("SHLO001", "a string without its closing quote")
        shown = token if len(token) <= 40 else token[:37] + "..."
        self.fail("SHLO001", f"expected {wanted}, found '{shown}'", hint=hint)

    def enter(self) -> None:
        """Go one level deeper. Raises SHLO007 when that is too deep."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail("SHLO007", "this is nested too deeply", why=f"the limit is {MAX_DEPTH} levels")

    def leave(self) -> None:
        self.depth -= 1

    # -- single tokens -----------------------------------------------------------------------------------------------
    def value_name(self) -> str:
        """``%name`` or ``%name#2``."""
        token = self.tokens[self.n]
        if token[:1] != "%" or len(token) < 2:
            self.unexpected("a value such as %0")
        self.n += 1
        return token

    def word(self, wanted: str) -> str:
        """A bare word."""
        token = self.tokens[self.n]
        if not (token[:1].isalpha() or token[:1] == "_"):
            self.unexpected(wanted)
        self.n += 1
        return token

    def symbol(self) -> str:
        """``@name`` or ``@"name"``, without sign and quotes."""
        token = self.tokens[self.n]
        if token[:1] != "@" or len(token) < 2:
            self.unexpected("a symbol such as @main")
        self.n += 1
        return unquote(token[1:]) if token[1] == '"' else token[1:]

    def string(self) -> str:
        """A quoted string, without quotes and escapes."""
        token = self.tokens[self.n]
        if token[:1] != '"' or len(token) < 2:
            self.unexpected("a string in double quotes")
        self.n += 1
        return unquote(token)

    def integer(self) -> int:
        """An integer of 64 bits."""
        token = self.tokens[self.n]
        if not _INTEGER.fullmatch(token):
            self.unexpected("an integer")
        value = int(token, 16 if token[:2] == "0x" else 10)
        if not -(2**63) <= value < 2**64:
            self.fail("SHLO001", "this number does not fit in 64 bits")
        self.n += 1
        return value

    def balanced(self) -> Text:
        """Text between brackets, and those, kept as it is written; ``->`` opens and closes nothing."""
        first = self.n
        self.skip_balanced()
        return Text(self.source.slice(first, self.n - 1))

    def skip_balanced(self) -> None:
        """Pass over text between brackets, and those, without a look at its places, which takes a second reading."""
        first, open_ = self.n, []
        while True:
            token = self.tokens[self.n]
            if token == END:
                self.n = first
                self.fail("SHLO001", f"'{self.tokens[first][:20]}' is never closed")
            if token in _OPENING:
                open_.append(_OPENING[token])
            elif token in _CLOSING:
                if not open_ or token != open_.pop():
                    self.unexpected(f"'{open_[-1]}'" if open_ else "a bracketed value")
            self.n += 1
            if not open_:
                return

    # -- types -------------------------------------------------------------------------------------------------------
    def type(self) -> Shape:
        """A type."""
        token = self.tokens[self.n]
        found = self._shapes.get(token)
        if found is not None:
            self.n += 1
            return found
        if token[:7] == "tensor<":
            found = self._tensor(token)
        elif token in _TOKEN_TYPES:
            found = shapes.token()
        elif token == "tuple":
            return self._tuple()
        elif token == "!stablehlo.future":
            self.n += 1
            parts = self._bracketed_types()
            return parts[0] if len(parts) == 1 else shapes.tuple_(parts)
        elif token in ("memref", "vector", "none") or token[:1] == "!":
            self.fail("SHLO005", f"the type '{token[:40]}' is not supported", hint="programs are made of tensors")
        else:
            self.unexpected("a type", hint="types look like tensor<2x3xf32>")
        self._shapes[token] = found
        self.n += 1
        return found

    def _tensor(self, token: str) -> Shape:
        try:
            return types.tensor(token)
        except HeronError as error:
            raise error.located(self.source.span(self.n)) from None

    def _tuple(self) -> Shape:
        self.n += 1
        return shapes.tuple_(self._bracketed_types())

    def _bracketed_types(self) -> list[Shape]:
        """``<type, type>``."""
        self.enter()
        self.expect("<")
        parts: list[Shape] = []
        while not self.accept(">"):
            if parts:
                self.expect(",")
            parts.append(self.type())
        self.leave()
        return parts

    def type_list(self) -> Types:
        """``type, type``, at least one."""
        found = [self.type()]
        while self.accept(","):
            found.append(self.type())
        return tuple(found)

    def parenthesized_types(self) -> Types:
        """``(type, type)`` or ``()``."""
        self.expect("(")
        if self.accept(")"):
            return ()
        found = self.type_list()
        self.expect(")")
        return found

    def signature(self) -> tuple[Types, Types]:
        """``(types) -> types``."""
        token = self.tokens[self.n]
        if len(token) > 1 and token[0] == "(":
            found = self._signatures.get(token)
            if found is None:
                before, _, after = token.partition("->")
                found = self._signatures[token] = (self._split(before), self._split(after))
            self.n += 1
            return found
        operands = self.parenthesized_types()
        self.expect("->")
        return operands, self.results()

    def results(self) -> Types:
        """``type`` or ``(types)``."""
        return self.parenthesized_types() if self.tokens[self.n] == "(" else (self.type(),)

    def _split(self, text: str) -> Types:
        found: list[Shape] = []
        for part in _TENSORS.findall(text):
            shape = self._shapes.get(part)
            if shape is None:
                shape = self._shapes[part] = self._tensor(part)
            found.append(shape)
        return tuple(found)
