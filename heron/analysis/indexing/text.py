"""The text of indexing maps, as XLA prints them, and its parser.

`(d0, d1)[s0] -> (d0 * 4 + s0, d1), domain: d0 in [0, 15], d1 in [0, 3], s0 in [0, 3], d0 * 4 + s0 in [0, 60]`;
runtime variables stand in braces after the symbols: `(d0)[s0]{rt0} -> (...)`. Constraints stand in the order of their
texts. One thing differs from XLA: a map that reads nothing is `(d0)[s0] -> KNOWN EMPTY(2)`, not `KNOWN EMPTY` alone, so
that its variables and the number of its results can be read back.

The parser also takes `/` and `ceildiv`, and a last `is_simplified: true`, which XLA printed at one time.

Source: https://openxla.org/xla/indexing and the affine maps of https://mlir.llvm.org/docs/Dialects/Affine.
"""

from __future__ import annotations

import re
from functools import lru_cache

from heron.analysis.indexing.expr import Add, Const, Dim, Expr, FloorDiv, Mod, Sym, divisor, format_expr
from heron.analysis.indexing.map import Constraint, IndexingMap, Var
from heron.errors import HeronError, Span

#: operations in one expression of a text; maps that programs give rise to have a few dozen at most
_MOST_OPERATIONS = 100
_INT64 = range(-(2**63), 2**63)


def format_map(m: IndexingMap) -> str:
    """The map on one line."""
    names = variable_names(m)
    n, k = len(m.dims), len(m.dims) + len(m.syms)
    spelled = list(names.values())
    head = f"({', '.join(spelled[:n])})"
    head += f"[{', '.join(spelled[n:k])}]" if m.syms else ""
    head += f"{{{', '.join(spelled[k:])}}}" if m.rt_vars else ""
    if m.is_known_empty:
        rank = f"({len(m.results)})" if m.results else ""
        return f"{head} -> KNOWN EMPTY{rank}"
    results = ", ".join(format_expr(r, names.__getitem__) for r in m.results)
    domain = [f"{n} in [{v.lo}, {v.hi}]" for n, v in zip(spelled, m.variables, strict=True)]
    domain += sorted(f"{format_expr(e, names.__getitem__)} in [{lo}, {hi}]" for e, lo, hi in m.constraints)
    return f"{head} -> ({results})" + (f", domain: {', '.join(domain)}" if domain else "")


def variable_names(m: IndexingMap) -> dict[Expr, str]:
    """The spelling of each variable, in order."""
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
        HeronError: GEN105, with the place, when the text is not an indexing map of 64-bit integers.
    """
    return _Parser(text).map()


_TOKEN = re.compile(r"\s*(->|\d+|[A-Za-z_][A-Za-z_0-9]*|[()\[\]{},:+*/-])")
_KEYWORDS = frozenset({"domain", "in", "mod", "floordiv", "ceildiv", "is_simplified", "true", "false"})


class _Parser:
    """Recursive descent over the tokens of one map."""

    def __init__(self, text: str) -> None:
        self.text, self.names, self.operations = text, dict[str, Expr](), 0
        self.tokens: list[tuple[str, int]] = []
        at, end = 0, len(text.rstrip())
        while at < end:
            found = _TOKEN.match(text, at)
            if found is None:
                raise self.error("unexpected character", at + len(text[at:]) - len(text[at:].lstrip()))
            self.tokens.append((found[1], found.start(1)))
            at = found.end()
        self.tokens.append(("", len(text)))
        self.at = 0

    def error(self, what: str, at: int | None = None) -> HeronError:
        at = self.tokens[self.at][1] if at is None else at
        start = self.text.rfind("\n", 0, at) + 1
        line = self.text[start:].partition("\n")[0]
        length = len(self.tokens[self.at][0]) if self.tokens and self.tokens[-1][0] == "" else 1
        place = Span("<indexing map>", self.text.count("\n", 0, at) + 1, at - start + 1, max(1, length), line)
        return HeronError("GEN105", what, where=place)

    # -- tokens

    def peek(self) -> str:
        return self.tokens[self.at][0]

    def expect(self, *tokens: str) -> None:
        for token in tokens:
            if not self.accept(token):
                raise self.error(f"expected '{token}'")

    def accept(self, token: str) -> bool:
        if self.peek() != token:
            return False
        self.at += 1
        return True

    # -- maps

    def map(self) -> IndexingMap:
        groups = self.name_list("(", ")"), self.name_list("[", "]"), self.name_list("{", "}")
        dims, syms, rts = groups
        self.names |= {n: Dim(i) for i, n in enumerate(dims)}
        self.names |= {n: Sym(i) for i, n in enumerate(syms + rts)}
        if len(self.names) != len(dims) + len(syms) + len(rts):
            raise self.error("a variable is named twice")
        self.expect("->")
        if self.accept("KNOWN"):
            return self.known_empty(groups)
        results = self.results()
        ranges: dict[str, tuple[int, int]] = {}
        constraints: list[Constraint] = []
        if self.accept(","):
            self.expect("domain", ":")
            self.domain(ranges, constraints)
        if self.peek():
            raise self.error("unexpected text after the map")
        for n in dims + syms + rts:
            if n not in ranges:
                raise self.error(f"no range is given for {n}")
        found = [
            [Var(*ranges[n], _given_name(n, prefix, at)) for at, n in enumerate(names)]
            for names, prefix in zip(groups, ("d", "s", "rt"), strict=True)
        ]
        return IndexingMap(results, found[0], found[1], constraints, found[2])

    def known_empty(self, groups: tuple[list[str], ...]) -> IndexingMap:
        self.expect("EMPTY")
        rank = 0
        if self.accept("("):
            at = self.at
            rank = self.integer()
            if not 0 <= rank <= 1000:
                self.at = at
                raise self.error("expected a number of results")
            self.expect(")")
        if self.peek():
            raise self.error("unexpected text after the map")
        found = [
            [Var(0, -1, _given_name(n, prefix, at)) for at, n in enumerate(names)]
            for names, prefix in zip(groups, ("d", "s", "rt"), strict=True)
        ]
        return IndexingMap.empty(rank, *found)

    def name_list(self, opening: str, closing: str) -> list[str]:
        if opening != "(" and self.peek() != opening:
            return []
        self.expect(opening)
        names: list[str] = []
        while not self.accept(closing):
            if names:
                self.expect(",")
            name = self.peek()
            if not name.isidentifier() or name in _KEYWORDS:
                raise self.error("expected a variable name")
            names.append(name)
            self.at += 1
        return names

    def results(self) -> list[Expr]:
        self.expect("(")
        results: list[Expr] = []
        while not self.accept(")"):
            if results:
                self.expect(",")
            results.append(self.expression())
        return results

    def domain(self, ranges: dict[str, tuple[int, int]], constraints: list[Constraint]) -> None:
        while True:
            if self.accept("is_simplified"):
                self.expect(":")
                if not (self.accept("true") or self.accept("false")):
                    raise self.error("expected 'true' or 'false'")
                return
            name, e = self.peek(), self.expression()
            self.expect("in", "[")
            lo = self.integer()
            self.expect(",")
            hi = self.integer()
            self.expect("]")
            if self.names.get(name) is e and name not in ranges:
                ranges[name] = lo, hi
            else:
                constraints.append((e, lo, hi))
            if not self.accept(","):
                return

    def integer(self) -> int:
        """An integer that fits in 64 bits."""
        start = self.at
        sign = -1 if self.accept("-") else 1
        token = self.peek()
        if not token.isdecimal():
            raise self.error("expected an integer")
        self.at += 1
        if len(token) > 19 or sign * int(token) not in _INT64:
            self.at = start
            raise self.error("the integer does not fit in 64 bits")
        return sign * int(token)

    # -- expressions

    def expression(self) -> Expr:
        self.operations = 0
        return self.sum()

    def operation(self) -> None:
        self.operations += 1
        if self.operations > _MOST_OPERATIONS:
            raise self.error(f"more than {_MOST_OPERATIONS} operations in one expression")

    def sum(self) -> Expr:
        total = self.product()
        while self.peek() in ("+", "-"):
            negative = self.accept("-")
            if not negative:
                self.expect("+")
            self.operation()
            term = self.product()
            if negative:
                term = term * -1
            total = Add(total, term)
        return total

    def product(self) -> Expr:
        value = self.factor()
        while self.peek() in ("*", "/", "floordiv", "ceildiv", "mod"):
            self.operation()
            op = self.peek()
            self.at += 1
            start = self.at
            other = self.factor()
            try:
                value = _combine(op, value, other)
            except HeronError as error:
                self.at = start
                raise self.error(error.what) from None
        return value

    def factor(self) -> Expr:
        token = self.peek()
        if token == "(":
            self.operation()
            self.at += 1
            value = self.sum()
            self.expect(")")
            return value
        if token.isdecimal():
            return Const(self.integer())
        if token == "-":
            self.operation()
            if self.tokens[self.at + 1][0].isdecimal():
                return Const(self.integer())
            self.at += 1
            return self.factor() * -1
        if token not in self.names:
            raise self.error(f"unknown variable '{token}'" if token else "unexpected end of text")
        self.at += 1
        return self.names[token]


def _combine(op: str, a: Expr, b: Expr) -> Expr:
    """`a op b`. Raises GEN101, GEN102 when that is not affine."""
    if op == "*":
        return a * b
    if op == "ceildiv":
        return -(-a // b)
    divisor(b, op)
    return Mod(a, b) if op == "mod" else FloorDiv(a, b)


def _given_name(name: str, prefix: str, at: int) -> str:
    """The name, unless it is what the variable would be called anyway."""
    return "" if name == f"{prefix}{at}" else name
