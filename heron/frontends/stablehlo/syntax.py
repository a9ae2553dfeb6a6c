"""The syntax tree of a StableHLO text: functions, regions and operations, with names unresolved.

The custom and the generic form of an operation give the same `Operation`; where the custom form has its own name for an
attribute (``dims`` for ``broadcast_dimensions``) both names are asked for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field
from typing import Any, NamedTuple, NoReturn

import numpy as np

from heron.errors import HeronError, Span
from heron.frontends.stablehlo.lexer import Source
from heron.hlo.ir.quoting import quote
from heron.hlo.ir.shape import Shape
from heron.records import dataclass

_NO_NAME = re.compile(r"[^\w.\-]", re.ASCII)


class Symbol(str):
    """``@name``, without the sign."""


class Text(str):
    """An attribute kept as it is written."""


class FunctionType(NamedTuple):
    """``(operands) -> results`` as an attribute."""

    operands: tuple[Shape, ...]
    results: tuple[Shape, ...]


class Operation:
    """One operation. ``results`` and ``operands`` are SSA names; `types` are those of the results.

    ``given``: the types of the operands; None where the form does not state them.
    """

    __slots__ = ("source", "at", "name", "results", "operands", "words", "attrs", "regions", "types", "given", "place")

    def __init__(self, source: Source, at: int, name: str, results: list[str]) -> None:
        self.source, self.at, self.name, self.results = source, at, name, results
        self.operands: list[str] = []
        self.words: list[str] = []
        self.attrs: dict[str, Any] = {}
        self.regions: list[Region] = []
        self.types: tuple[Shape, ...] = ()
        self.given: tuple[Shape, ...] | None = None
        self.place: int = 0  # token of its `loc`, 0 when it has none

    def retyped(self, types: Sequence[Shape]) -> Operation:
        """The same operation with other result types; its attributes and regions may be replaced."""
        made = Operation(self.source, self.at, self.name, self.results)
        made.operands, made.words, made.place = self.operands, self.words, self.place
        made.attrs, made.regions, made.types = dict(self.attrs), self.regions, tuple(types)
        return made

    def span(self) -> Span:
        """The place of the operation's name."""
        return self.source.span(self.at)

    def fail(self, code: str, what: str, why: str | None = None, hint: str | None = None) -> NoReturn:
        """Raise an error that underlines the operation's name."""
        raise HeronError(code, what, where=self.span(), why=why, hint=hint)

    # -- attributes --------------------------------------------------------------------------------------------------
    def find(self, *names: str) -> Any:
        """The attribute of the first of `names` that is there, or None."""
        for name in names:
            if name in self.attrs:
                return self.attrs[name]
        return None

    def wrong(self, name: str, wanted: str) -> NoReturn:
        """Raise SHLO006: an attribute is missing or no `wanted`."""
        value = self.attrs.get(name)
        why = f"'{name}' is missing" if value is None else f"'{name}' is {value!r:.60}"
        self.fail("SHLO006", f"{self.name} needs {wanted} as attribute '{name}'", why=why)

    def integer(self, *names: str, default: int | None = None) -> int:
        """An integer attribute."""
        value = self.find(*names)
        if value is None and default is not None:
            return default
        if not isinstance(value, int):
            self.wrong(names[-1], "an integer")
        return int(value)

    def flag(self, *names: str, default: bool = False) -> bool:
        """A boolean or unit attribute."""
        value = self.find(*names)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.wrong(names[-1], "true or false")
        return value

    def ints(self, *names: str, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """A list of integers, however written."""
        value = self.find(*names)
        if value is None and default is not None:
            return default
        if isinstance(value, np.ndarray) and value.dtype.kind in "iu" and value.ndim <= 1:
            return tuple(value.reshape(-1).tolist())
        if not isinstance(value, tuple) or not all(isinstance(v, int) for v in value):
            self.wrong(names[-1], "a list of integers")
        return value

    def table(self, *names: str) -> list[list[int]]:
        """A matrix of integers; an empty one has no rows."""
        value = self.find(*names)
        if isinstance(value, np.ndarray) and value.dtype.kind in "iu" and value.ndim == 2:
            return value.tolist()
        if not isinstance(value, tuple) or not all(isinstance(v, tuple) for v in value):
            self.wrong(names[-1], "a matrix of integers")
        if not all(isinstance(n, int) for row in value for n in row):
            self.wrong(names[-1], "a matrix of integers")
        return [list(row) for row in value]

    def word(self, *names: str, default: str | None = None) -> str:
        """An enumeration's case or a string."""
        value = self.find(*names)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            self.wrong(names[-1], "a name")
        return str(value)

    def fields(self, *names: str) -> dict[str, Any]:
        """A dictionary or structure; empty when missing."""
        value = self.find(*names)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.wrong(names[-1], "a structure")
        return value


@dataclass(slots=True)
class Argument:
    """An argument of a function or block: name, type, token of its location, attributes."""

    name: str
    type: Shape
    place: int = 0
    attrs: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Region:
    """One block: its arguments and operations, the last of which is a return."""

    arguments: list[Argument]
    operations: list[Operation]
    at: int
    _free: list[str] | None = None

    def free(self) -> list[str]:
        """Names used here but defined outside, in order of use."""
        if self._free is None:
            defined = {a.name for a in self.arguments}
            found: dict[str, None] = {}
            for op in self.operations:
                inner = [name for region in op.regions for name in region.free()]
                for name in (*op.operands, *inner):
                    if name not in defined and base(name) not in defined:
                        found[name] = None
                defined.update(op.results)
            self._free = list(found)
        return self._free


@dataclass(slots=True)
class Function:
    """A ``func.func``: what it calls is collected while reading."""

    name: str
    public: bool
    arguments: list[Argument]
    results: list[tuple[Shape, dict[str, Any]]]
    body: Region | None
    at: int
    calls: dict[str, int] = field(default_factory=dict)
    attrs: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class Program:
    """A module: its name, attributes, functions and meshes."""

    source: Source
    name: str = "module"
    attrs: dict[str, Any] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    meshes: dict[str, str] = field(default_factory=dict)
    #: token after the ``=`` of each ``#alias = …``
    aliases: dict[str, int] = field(default_factory=dict)


def base(name: str) -> str:
    """``%0`` for ``%0#0``: the first result may be named either way when it is the only one."""
    return name[:-2] if name.endswith("#0") else name


def plain(name: str, otherwise: str = "arg_") -> str:
    """A name as HLO text takes it: letters, digits, ``_ . -``, not beginning with a digit, without MLIR's sign."""
    word = _NO_NAME.sub("_", name.lstrip("%@"))
    return word if word[:1].isalpha() or word[:1] == "_" else otherwise + word


def as_text(value: Any) -> str:
    """An attribute's value in MLIR's text, for what heron only carries."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (Text, int, float, Shape)):
        return str(value)
    if isinstance(value, Symbol):
        return f"@{value}"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, tuple):
        return "[" + ", ".join(map(as_text, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {as_text(v)}" for k, v in value.items()) + "}"
    return str(value)
