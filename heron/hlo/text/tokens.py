"""A place in the tokens of a text: the base of the readers of HLO's and of StableHLO's."""

from __future__ import annotations

from typing import NoReturn

from heron.hlo.text.lexer import Source


class Tokens:
    """Reads tokens one after the other; every failure is a HeronError that underlines the token.

    ``n``: the number of the next token; ``depth``: how deep the nesting is there.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.tokens = source.tokens
        self.n = 0
        self.depth = 0

    def fail(
        self, code: str, what: str, n: int | None = None, why: str | None = None, hint: str | None = None
    ) -> NoReturn:
        """Raise an error at token `n`, by default the next one."""
        self.source.fail(code, what, self.n if n is None else n, why, hint)

    def unexpected(self, wanted: str, hint: str | None = None) -> NoReturn:
        """Raise an error: the next token is not what it should be."""
        raise NotImplementedError

    def accept(self, token: str) -> bool:
        """Step over `token` if it is next."""
        if self.tokens[self.n] == token:
            self.n += 1
            return True
        return False

    def expect(self, token: str) -> None:
        """Step over `token`, which must be next."""
        if self.tokens[self.n] != token:
            self.unexpected(f"'{token}'")
        self.n += 1
