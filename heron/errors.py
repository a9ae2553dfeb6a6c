"""The one error type a user ever sees.

Every failure heron knows of is a `HeronError`: a stable code that can be searched for, what went wrong, where
(a span of HLO text, an instruction, a Python source line), why (with the numbers), and what to try next.
"""

from __future__ import annotations

from heron.records import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a text: 1-based line and column, `length` characters long, with the line itself."""

    filename: str
    line: int
    column: int
    length: int
    text: str

    def render(self) -> str:
        """The place as `file:line:column`, the line, and a row of carets under the span."""
        text, column = self.text.replace("\t", " "), self.column
        if len(text) > 100:  # long lines (big constants) are cut around the span
            start = max(0, column - 41)
            text, column = text[start : start + 100], column - start
        carets = "^" * max(1, min(self.length, len(text) - column + 1))
        return f"{self.filename}:{self.line}:{self.column}\n    {text}\n    {' ' * (column - 1)}{carets}"


class HeronError(Exception):
    """A located, coded, actionable error.

    Args:
        code: stable identifier, e.g. ``"HLO010"``. The letters name the area: TXT text, SHLO StableHLO, JAX functions,
            PROTO protocol buffers, HLO language, EVAL evaluator, PASS passes, SPMD several devices, BUF buffers,
            GEN kernels, LLVM machine code, RUN runtime, PJRT, TGT targets, TUNE measured choices, CLI command line.
            docs/reference/errors.md lists every code with cause and cure; codes never change their meaning.
        what: the problem, in one sentence.
        where: a `Span`, an instruction's text, or a file name.
        why: the numbers or the rule behind the problem.
        hint: the next step for the user.
    """

    def __init__(
        self,
        code: str,
        what: str,
        *,
        where: Span | str | None = None,
        why: str | None = None,
        hint: str | None = None,
    ) -> None:
        self.code, self.what, self.where, self.why, self.hint = code, what, where, why, hint
        super().__init__(self.render())

    def __reduce__(self) -> tuple[object, ...]:
        """All fields, so that an error raised in a worker process arrives whole."""
        return _unwritten, (type(self), *self.args), self.__dict__

    def render(self) -> str:
        """The whole message as plain text, one fact a line."""
        lines = [f"error[{self.code}]: {self.what}"]
        if self.where is not None:
            place = self.where.render() if isinstance(self.where, Span) else self.where
            lines.append(f"  at {place}")
        if self.why:
            lines.append(f"  why: {self.why}")
        if self.hint:
            lines.append(f"  try: {self.hint}")
        return "\n".join(lines)

    def to_json(self) -> dict[str, object]:
        """The same facts as plain JSON values."""
        where: object = self.where
        if isinstance(where, Span):
            where = {n: getattr(where, n) for n in ("filename", "line", "column", "length", "text")}
        return {"code": self.code, "what": self.what, "where": where, "why": self.why, "try": self.hint}

    def located(self, where: Span | str) -> HeronError:
        """The same error with a place, unless it has one already."""
        if self.where is not None:
            return self
        return HeronError(self.code, self.what, where=where, why=self.why, hint=self.hint)


def _unwritten(cls: type[HeronError], *message: str) -> HeronError:
    """An error without its fields, which pickle sets next."""
    return cls.__new__(cls, *message)
