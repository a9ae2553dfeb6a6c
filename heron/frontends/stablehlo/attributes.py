"""Attribute values, the text after an ``=``, as plain Python values.

Integers, floats, booleans, strings and lists (tuples) as such; dictionaries and structures (``#stablehlo.gather<…>``)
as dict; enumeration cases as the case's name; ``dense`` as a NumPy array; anything of a dialect heron only carries as
`Text`. The type behind a number says nothing heron needs and is dropped.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from heron.errors import HeronError
from heron.frontends.stablehlo import types
from heron.frontends.stablehlo.constants import dense
from heron.frontends.stablehlo.cursor import Cursor
from heron.frontends.stablehlo.syntax import FunctionType, Symbol, Text
from heron.hlo.ir import shape as shapes
from heron.hlo.ir.window import ConvDims

_NUMBER = re.compile(r"-?\d+(\.\d*)?([eE][+-]?\d+)?")
_INTS = re.compile(r"-?\d{1,20}")
#: `#stablehlo<kind CASE>` and the like
_CASE = re.compile(r"#(?:stablehlo|mhlo|chlo|vhlo)$")
_CASE_KIND = re.compile(r"#(?:stablehlo|mhlo|chlo)\.\w+_mode$|#(?:stablehlo|mhlo)\.(?:precision|transpose)$")


class Attributes(Cursor):
    """A cursor that reads attributes."""

    def __init__(self, source: Any) -> None:
        super().__init__(source)
        self._lists: dict[str, tuple[int, ...]] = {}

    def dictionary(self) -> dict[str, Any]:
        """``{name = value, flag}``; names may be strings."""
        self.enter()
        self.expect("{")
        found: dict[str, Any] = {}
        while not self.accept("}"):
            if found:
                self.expect(",")
            at = self.n
            name = self.string() if self.tokens[at][:1] == '"' else self.word("the name of an attribute")
            if name in found:
                self.fail("SHLO001", f"'{name[:40]}' is given twice", at)
            if not self.accept("="):
                found[name] = True
            elif name.endswith("backend_config") and self.tokens[self.n] == "{":
                found[name] = self.balanced()  # carried as it is written
            else:
                found[name] = self.value()
        self.leave()
        return found

    def value(self) -> Any:
        """Any attribute."""
        token = self.tokens[self.n]
        first = token[:1]
        if first == "[":
            return self.ints() if len(token) > 1 else self._list()
        if first == '"':
            text = self.string()
            if self.accept(":"):
                self.type()
            return text
        if first == "{":
            return self.dictionary()
        if first == "@":
            return self._symbol()
        if first == "#":
            return self._of_dialect()
        if first == "<":
            return self._structure(">", "<")
        if first == "(":
            return FunctionType(*self.signature())
        if first == "-" or first.isdigit():
            return self.number()
        return self.type() if first == "!" else self._named(token)

    def _named(self, token: str) -> Any:
        """An attribute that begins with a word."""
        if token[:6] == "dense<":
            return self._dense()
        if token[:6] == "array<":
            return self._array()
        if token[:7] == "tensor<" or token == "tuple":
            return self.type()
        if token[:4] == "loc(" or token == "loc":
            self.n += 1
            return self.balanced() if token == "loc" else Text(token)
        word = self.word("an attribute's value")
        return word == "true" if word in ("true", "false") else word

    def ints(self) -> tuple[int, ...]:
        """``[1, 2]``, one token."""
        token = self.tokens[self.n]
        found = self._lists.get(token)
        if found is None:
            words = token[1:-1].replace("\n", " ").split(",")
            words = [w.strip() for w in words]
            if words == [""]:
                words = []
            if token[:1] != "[" or not all(_INTS.fullmatch(w) for w in words):
                self.unexpected("a list of integers, such as [0, 1]")
            found = self._lists[token] = tuple(map(int, words))
        self.n += 1
        return found

    # -- kinds of values ---------------------------------------------------------------------------------------------
    def _list(self) -> tuple[Any, ...]:
        self.enter()
        self.n += 1
        found: list[Any] = []
        while not self.accept("]"):
            if found:
                self.expect(",")
            found.append(self.value())
        self.leave()
        return tuple(found)

    def _symbol(self) -> Symbol:
        name = self.symbol()
        while self.tokens[self.n] == ":" and self.tokens[self.n + 1] == ":":
            self.n += 2
            name += "::" + self.symbol()
        return Symbol(name)

    def number(self, typed: bool = True) -> int | float:
        """A number; the type after it is skipped if `typed`; otherwise a colon belongs to the operation."""
        token = self.tokens[self.n]
        if token[:2] == "0x":
            value: int | float = self.integer()
        elif (match := _NUMBER.fullmatch(token)) is None:
            self.unexpected("a number")
        elif match[1] or match[2]:
            self.n += 1
            value = float(token)
        else:
            value = self.integer()
        if not typed or not self.accept(":"):
            return value
        at = self.n
        name = self.word("a type")
        if name[:1] != "i" and token[:2] == "0x" and isinstance(value, int):  # the bits of a float
            return self._float_of_bits(value, name, at)
        return value

    def _float_of_bits(self, bits: int, name: str, at: int) -> float:
        try:
            t = types.element_type(name)
            return float(dense(f"dense<{bits:#x}>", shapes.scalar(t)))
        except HeronError as error:
            raise error.located(self.source.span(at)) from None

    def _dense(self) -> np.ndarray:
        at, token = self.n, self.tokens[self.n]
        self.n += 1
        self.expect(":")
        shape = self.type()
        try:
            return dense(token, shape)
        except HeronError as error:
            raise error.located(self.source.span(at)) from None

    def _array(self) -> tuple[Any, ...]:
        """``array<i64: 1, 2>``."""
        body = self.tokens[self.n][6:-1]
        words = [w.strip() for w in body.partition(":")[2].split(",")]
        if words == [""]:
            words = []
        if all(_INTS.fullmatch(w) for w in words):
            found: tuple[Any, ...] = tuple(map(int, words))
        elif all(w in ("true", "false") for w in words):
            found = tuple(w == "true" for w in words)
        elif all(_NUMBER.fullmatch(w) for w in words):
            found = tuple(map(float, words))
        else:
            self.unexpected("an array, such as array<i64: 1, 2>")
        self.n += 1
        return found

    # -- attributes of dialects --------------------------------------------------------------------------------------
    def _of_dialect(self) -> Any:
        """``#dialect<kind CASE>``, ``#dialect.kind<…>`` or an alias."""
        first, token = self.n, self.tokens[self.n]
        self.n += 1
        if self.tokens[self.n] != "<":
            return self._alias(first)
        if _CASE.match(token):
            self.n += 1
            kind = self.word("the kind of an enumeration")
            case = self.value()
            self.expect(">")
            return case if isinstance(case, str) else Text(kind)
        if _CASE_KIND.match(token):
            self.n += 1
            case = self.word("a case")
            self.expect(">")
            return case
        if token in ("#stablehlo.conv", "#mhlo.conv"):
            self.n += 1
            dims = self.convolution_dimensions()
            self.expect(">")
            return dims
        if token.split(".")[0] in ("#stablehlo", "#mhlo", "#chlo"):
            found = self._structure(">", "<")
            for name, value in found.items():
                if isinstance(value, tuple) and any(isinstance(v, float | bool) for v in value):
                    self.fail("SHLO006", f"'{name}' of {token[:40]} must be a list of integers", first)
            return found
        self.skip_balanced()
        return Text(self.source.slice(first, self.n - 1))

    def _alias(self, at: int) -> Any:
        """The value of ``#name``, from its definition elsewhere in the text."""
        name = self.tokens[at]
        place = self.aliases().get(name)
        if place is None:
            self.fail("SHLO003", f"'{name[:40]}' is not defined", at)
        after, self.n = self.n, place
        self.enter()
        found = self.value()
        self.leave()
        self.n = after
        return found

    def aliases(self) -> dict[str, int]:
        """The places of the values of aliases."""
        return {}

    def _structure(self, closing: str, opening: str) -> dict[str, Any]:
        """``<name = value, flag>``."""
        self.enter()
        self.expect(opening)
        found: dict[str, Any] = {}
        while not self.accept(closing):
            if found:
                self.expect(",")
            name = self.word("the name of a field")
            found[name] = self.value() if self.accept("=") else True
        self.leave()
        return found

    # -- convolutions ------------------------------------------------------------------------------------------------
    def convolution_dimensions(self) -> ConvDims:
        """``[b, 0, f]x[0, i, o]->[b, 0, f]``."""
        at = self.n
        lhs = self._labels("b", "f")
        self.expect("x")
        rhs = self._labels("i", "o")
        self.expect("->")
        out = self._labels("b", "f")
        ranks = {len(lhs[2]), len(rhs[2]), len(out[2])}
        if len(ranks) > 1:
            self.fail("SHLO006", "input, kernel and output need the same spatial dimensions", at)
        return ConvDims(*lhs, *rhs, *out)

    def _labels(self, first: str, second: str) -> tuple[int, int, tuple[int, ...]]:
        at = self.n
        self.expect("[")
        found: dict[str, int] = {}
        count = 0
        while not self.accept("]"):
            if count:
                self.expect(",")
            found[self.tokens[self.n]] = count
            self.n += 1
            count += 1
        spatial = [found.get(str(d), -1) for d in range(count - 2)]
        if count < 2 or first not in found or second not in found or -1 in spatial:
            self.fail("SHLO006", f"dimensions are '{first}', '{second}' and 0, 1, …, each once", at)
        return found[first], found[second], tuple(spatial)
