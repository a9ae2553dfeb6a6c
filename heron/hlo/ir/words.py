"""Words: a cursor over the short texts that sharding, replica groups, origins and the like are kept as."""

from __future__ import annotations

import re
from typing import NoReturn

from heron.errors import HeronError
from heron.hlo.ir.quoting import unquote

_TOKEN = re.compile(
    r"(?:\s|/\*.*?\*/)*("
    r"'(?:[^'\\]|\\.)*'"
    r'|"(?:[^"\\]|\\.)*"'
    r"|[A-Za-z_][\w.\-]*"
    r"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?"
    r"|<=|\S)",
    re.DOTALL,
)
_INTEGER = re.compile(r"-?\d{1,19}")
_DEPTH = 60


class Words:
    """Tokens of one text; every failure is a HeronError with `code` that shows it."""

    def __init__(self, text: str, what: str, code: str = "PROTO006") -> None:
        self.text, self.what, self.code = text, what, code
        self.tokens = [*_TOKEN.findall(text), "", ""]
        self.n = 0
        self.depth = 0

    @property
    def next(self) -> str:
        """The token at hand; empty at the end."""
        return self.tokens[self.n]

    def fail(self, wanted: str) -> NoReturn:
        """Raise: this is not what was expected."""
        found = f"'{self.next[:40]}'" if self.next else "the end"
        raise HeronError(self.code, f"{self.what}: expected {wanted}, found {found}", where=self.text[:200])

    def accept(self, token: str) -> bool:
        """Step over `token` if it is next."""
        if self.tokens[self.n] != token:
            return False
        self.n += 1
        return True

    def expect(self, token: str) -> None:
        """Step over `token`, which must be next."""
        if not self.accept(token):
            self.fail(f"'{token}'")

    def enter(self) -> None:
        """One level deeper; undo with `leave`."""
        self.depth += 1
        if self.depth > _DEPTH:
            self.fail(f"at most {_DEPTH} levels")

    def leave(self) -> None:
        """One level up."""
        self.depth -= 1

    def word(self) -> str:
        """Any token."""
        if not self.next:
            self.fail("a word")
        self.n += 1
        return self.tokens[self.n - 1]

    def string(self) -> str:
        """A quoted string without its quotes."""
        if self.next[:1] not in ('"', "'"):
            self.fail("a string")
        return unquote(self.word())

    def integer(self) -> int:
        """An integer of 64 bits."""
        if not _INTEGER.fullmatch(self.next) or not -(2**63) <= int(self.next) < 2**63:
            self.fail("an integer of 64 bits")
        return int(self.word())

    def number(self) -> float:
        """A floating-point number."""
        try:
            found = float(self.next)
        except ValueError:
            self.fail("a number")
        self.n += 1
        return found

    def integers(self, close: str) -> list[int]:
        """Integers up to and including `close`, separated by commas."""
        found: list[int] = []
        while not self.accept(close):
            if found:
                self.expect(",")
            found.append(self.integer())
        return found

    def end(self) -> None:
        """Nothing may follow."""
        if self.next:
            self.fail("nothing more")
