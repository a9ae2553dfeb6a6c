"""The typed dictionary in a custom call's backend_config, as MLIR writes it: ``{a = 1 : i32, b = "x", c = [1, 2]}``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from heron.errors import HeronError
from heron.records import dataclass

_TOKEN = re.compile(
    r'\s*(?:(?P<string>"(?:[^"\\]|\\.)*")|(?P<number>-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?))'
    r"|(?P<word>[A-Za-z_][\w.$]*)|(?P<mark>[{}\[\]<>=:,]))"
)
_MLIR_TYPES = {"i1": "pred", "index": "s64", "f8E4M3FN": "f8e4m3fn", "f8E5M2": "f8e5m2", "bf16": "bf16"}


@dataclass(frozen=True, slots=True)
class Typed:
    """A number, or a list of numbers, of an element type."""

    element_type: str
    value: Any


def read_attributes(text: str) -> Mapping[str, str | bool | Typed | Mapping[str, Any]]:
    """Names and values; an empty text has none. Raises HLO040 for a text that is no such dictionary."""
    if not text.strip():
        return {}
    reader = _Reader(text)
    found = reader.value()
    if not isinstance(found, dict) or reader.at != len(reader.tokens):
        raise reader.fail()
    return found


def _element_type(name: str) -> str:
    if found := re.fullmatch(r"([su]?)i(\d+)", name):
        return _MLIR_TYPES.get(name) or ("u" if found[1] == "u" else "s") + found[2]
    return _MLIR_TYPES.get(name, name.lower())


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.tokens: list[tuple[str, str]] = []
        place = 0
        while place < len(text.rstrip()):
            found = _TOKEN.match(text, place)
            if found is None:
                raise self.fail()
            self.tokens.append((found.lastgroup or "", found[found.lastgroup or 0]))
            place = found.end()

    def fail(self) -> HeronError:
        return HeronError(
            "HLO040", "a custom call's backend_config is not a dictionary of attributes", where=self.text[:200]
        )

    def next(self) -> tuple[str, str]:
        if self.at == len(self.tokens):
            raise self.fail()
        self.at += 1
        return self.tokens[self.at - 1]

    def accept(self, mark: str) -> bool:
        if self.at < len(self.tokens) and self.tokens[self.at] == ("mark", mark):
            self.at += 1
            return True
        return False

    def value(self) -> Any:
        kind, text = self.next()
        if kind == "string":
            return bytes(text[1:-1], "utf-8").decode("unicode_escape")
        if kind == "number":
            return self.number(text)
        if text == "{":
            return self.dictionary()
        if text == "[":
            return self.list()
        if text in ("true", "false"):
            return text == "true"
        if text in ("array", "dense"):
            return self.typed_array(text)
        raise self.fail()

    def number(self, text: str) -> Typed:
        is_float = bool(re.search(r"[.eE]", text)) and not text.startswith(("0x", "-0x"))
        kind = _element_type(self.next()[1]) if self.accept(":") else "f64" if is_float else "s64"
        return Typed(kind, float(text) if is_float or kind.startswith(("f", "bf")) else int(text, 0))

    def dictionary(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not self.accept("}"):
            kind, name = self.next()
            name = name[1:-1] if kind == "string" else name
            found[name] = self.value() if self.accept("=") else True
            self.accept(",")
        return found

    def list(self) -> Any:
        items = []
        while not self.accept("]"):
            items.append(self.value())
            self.accept(",")
        if items and all(isinstance(x, Typed) for x in items):
            return Typed(items[0].element_type, [x.value for x in items])
        return {str(n): x for n, x in enumerate(items)}

    def typed_array(self, form: str) -> Typed:
        """``array<i32: 1, 2>`` or ``dense<[1, 2]> : tensor<2xi32>``."""
        if not self.accept("<"):
            raise self.fail()
        if form == "array":
            kind, values = _element_type(self.next()[1]), []
            self.accept(":")
            while not self.accept(">"):
                value = self.value()
                values.append(value.value if isinstance(value, Typed) else value)
                self.accept(",")
            return Typed(kind, values)
        inner = self.value()
        rest = "".join(t for _, t in self.tokens[self.at :])
        shape = re.match(r">:tensor<((?:\d+x)*)(\w+)>", rest)
        if shape is None:
            raise self.fail()
        while self.next()[1] != "tensor":
            pass
        while not self.accept(">"):
            self.next()
        count = 1
        for d in shape[1].split("x")[:-1]:
            count *= int(d)
        values = inner.value if isinstance(inner, Typed) else []
        return Typed(_element_type(shape[2]), values if isinstance(values, list) else [values] * count)
