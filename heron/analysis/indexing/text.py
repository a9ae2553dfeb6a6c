"""The text of indexing maps, as XLA prints them, and its parser.

`(d0, d1)[s0] -> (d0 * 4 + s0, d1), domain: d0 in [0, 15], d1 in [0, 3], s0 in [0, 3], d0 * 4 + s0 in [0, 60]`;
runtime variables stand in braces after the symbols: `(d0)[s0]{rt0} -> (...)`; an empty map is `KNOWN EMPTY`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from heron.analysis.indexing.expr import Add, Const, Dim, Expr, FloorDiv, Mod, Mul, Sym, format_expr
from heron.analysis.indexing.map import Constraint, IndexingMap, Var
from heron.errors import HeronError, Span


def format_map(m: IndexingMap) -> str:
    """The map on one line."""
    names = _names(m)
    dims = [names[Dim(i)] for i in range(len(m.dims))]
    syms = [names[Sym(i)] for i in range(len(m.syms))]
    rts = [names[Sym(len(m.syms) + i)] for i in range(len(m.rt_vars))]
    head = f"({', '.join(dims)})"
    head += f"[{', '.join(syms)}]" if syms else ""
    head += f"{{{', '.join(rts)}}}" if rts else ""
    if m.is_known_empty:
        rank = f"({len(m.results)})" if m.results else ""
        return f"{head} -> KNOWN EMPTY{rank}"
    results = ", ".join(format_expr(r, names.__getitem__) for r in m.results)
    variables = (*m.dims, *m.syms, *m.rt_vars)
    domain = [f"{n} in [{v.lo}, {v.hi}]" for n, v in zip(dims + syms + rts, variables, strict=True)]
    domain += [f"{format_expr(e, names.__getitem__)} in [{lo}, {hi}]" for e, lo, hi in m.constraints]
    return f"{head} -> ({results})" + (f", domain: {', '.join(domain)}" if domain else "")


def _names(m: IndexingMap) -> dict[Expr, str]:
    names: dict[Expr, str] = {}
    for i, v in enumerate(m.dims):
        names[Dim(i)] = v.name or f"d{i}"
    for i, v in enumerate(m.syms):
        names[Sym(i)] = v.name or f"s{i}"
    for i, v in enumerate(m.rt_vars):
        names[Sym(len(m.syms) + i)] = v.name or f"rt{i}"
    return names


@lru_cache(maxsize=4096)
def parse_map(text: str) -> IndexingMap:
    """The map that `text` spells.

    Raises:
        HeronError: GEN105, with the place, when the text is not an indexing map.
    """
    return _Parser(text).map()


_TOKEN = re.compile(r"\s*(->|-?\d+(?=\s*[\],)])|\d+|[A-Za-z_][A-Za-z_0-9]*|[()\[\]{},:+*-])")
_DEFAULT_NAME = re.compile(r"(d|s|rt)\d+$")


class _Parser:
    """Recursive descent over the tokens of one map."""

    def __init__(self, text: str) -> None:
        self.text, self.names = text, dict[str, Expr]()
        self.tokens: list[tuple[str, int]] = []
        at = 0
        while at < len(text) and text[at:].strip():
            found = _TOKEN.match(text, at)
            if found is None:
                raise self.error("unexpected character", at + len(text[at:]) - len(text[at:].lstrip()))
            self.tokens.append((found[1], found.start(1)))
            at = found.end()
        self.tokens.append(("", len(text)))
        self.at = 0

    def error(self, what: str, column: int | None = None) -> HeronError:
        column = self.tokens[self.at][1] if column is None else column
        return HeronError("GEN105", what, where=Span("<indexing map>", 1, column + 1, 1, self.text))

    def peek(self) -> str:
        return self.tokens[self.at][0]

    def next(self) -> str:
        token = self.tokens[self.at][0]
        self.at += token != ""
        return token

    def expect(self, token: str) -> None:
        if self.peek() != token:
            raise self.error(f"expected '{token}'")
        self.at += 1

    def accept(self, token: str) -> bool:
        if self.peek() != token:
            return False
        self.at += 1
        return True

    def map(self) -> IndexingMap:
        dims, syms, rts = self.name_list("(", ")"), self.name_list("[", "]"), self.name_list("{", "}")
        self.names |= {n: Dim(i) for i, n in enumerate(dims)}
        self.names |= {n: Sym(i) for i, n in enumerate(syms + rts)}
        if len(self.names) != len(dims) + len(syms) + len(rts):
            raise self.error("a variable is named twice")
        self.expect("->")
        if self.accept("KNOWN"):
            return self.known_empty(dims, syms, rts)
        results = self.results()
        ranges: dict[str, Var] = {}
        constraints: list[Constraint] = []
        if self.accept(","):
            self.expect("domain")
            self.expect(":")
            self.domain(ranges, constraints)
        if self.peek():
            raise self.error("unexpected text after the map")
        for n in dims + syms + rts:
            if n not in ranges:
                raise self.error(f"no range is given for {n}")
        groups = [[ranges[n] for n in names] for names in (dims, syms, rts)]
        return IndexingMap(results, groups[0], groups[1], constraints, groups[2])

    def known_empty(self, dims: list[str], syms: list[str], rts: list[str]) -> IndexingMap:
        self.expect("EMPTY")
        rank = self.integer_in_parentheses() if self.peek() == "(" else 0
        nothing = Var(0, -1)
        return IndexingMap([Const(0)] * rank, [nothing] * len(dims), [nothing] * len(syms),
                           ((Const(1), 0, 0),), [nothing] * len(rts))  # fmt: skip

    def integer_in_parentheses(self) -> int:
        self.expect("(")
        value = self.integer()
        self.expect(")")
        return value

    def name_list(self, opening: str, closing: str) -> list[str]:
        if opening != "(" and self.peek() != opening:
            return []
        self.expect(opening)
        names: list[str] = []
        while not self.accept(closing):
            if names:
                self.expect(",")
            if not self.peek().isidentifier():
                raise self.error("expected a variable name")
            names.append(self.next())
        return names

    def results(self) -> list[Expr]:
        self.expect("(")
        results: list[Expr] = []
        while not self.accept(")"):
            if results:
                self.expect(",")
            results.append(self.sum())
        return results

    def domain(self, ranges: dict[str, Var], constraints: list[Constraint]) -> None:
        while True:
            name, e = self.peek(), self.sum()
            self.expect("in")
            self.expect("[")
            lo = self.integer()
            self.expect(",")
            hi = self.integer()
            self.expect("]")
            if self.names.get(name) is e and name not in ranges:
                ranges[name] = Var(lo, hi, "" if _DEFAULT_NAME.match(name) else name)
            else:
                constraints.append((e, lo, hi))
            if not self.accept(","):
                return

    def integer(self) -> int:
        sign = -1 if self.accept("-") else 1
        try:
            value = int(self.peek())
        except ValueError:
            raise self.error("expected an integer") from None
        self.at += 1
        return sign * value

    def sum(self) -> Expr:
        total = self.product()
        while True:
            if self.accept("+"):
                term = self.product()
            elif self.accept("-"):
                term = self.product()
                negated = isinstance(term, Mul) and isinstance(term.rhs, Const)
                term = Mul(term.lhs, Const(-term.rhs.value)) if negated else term * -1  # pyright: ignore
            elif re.fullmatch(r"-\d+", self.peek()):  # "d0 -1" lexes as a negative number
                term = Const(int(self.next()))
            else:
                return total
            total = Add(total, term)

    def product(self) -> Expr:
        value = self.factor()
        while True:
            if self.accept("*"):
                value = value * self.factor()
            elif self.accept("floordiv"):
                value = self.divide(value, FloorDiv)
            elif self.accept("mod"):
                value = self.divide(value, Mod)
            else:
                return value

    def divide(self, value: Expr, op: type[FloorDiv] | type[Mod]) -> Expr:
        divisor = self.factor()
        if not isinstance(divisor, Const) or divisor.value <= 0:
            raise self.error("the divisor must be a positive constant")
        return op(value, divisor)

    def factor(self) -> Expr:
        token = self.peek()
        if token == "(":
            self.at += 1
            value = self.sum()
            self.expect(")")
            return value
        if token == "-":
            self.at += 1
            return self.factor() * -1
        if re.fullmatch(r"-?\d+", token):
            self.at += 1
            return Const(int(token))
        if token not in self.names:
            raise self.error(f"unknown variable '{token}'" if token else "unexpected end of text")
        self.at += 1
        return self.names[token]
