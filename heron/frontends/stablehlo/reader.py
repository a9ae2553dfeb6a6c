"""Reader: StableHLO text to a `Program`, without asking what its operations mean."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import numpy as np

from heron.frontends.stablehlo.forms import Forms
from heron.frontends.stablehlo.lexer import END, Source, unquote
from heron.frontends.stablehlo.syntax import (
    Argument,
    Function,
    FunctionType,
    Operation,
    Program,
    Region,
    Symbol,
    as_text,
)
from heron.hlo.ir.shape import Shape

#: operations of func that print without their dialect's name
_SHORT = {"call": "func.call", "return": "func.return"}
_CALLEES = ("callee", "decomposition", "called_computations")


def read(text: str, filename: str, elsewhere: Sequence[np.ndarray] = ()) -> Program:
    """The program of a text; ``elsewhere``: constants that it leaves out. Raises SHLO001, SHLO003, SHLO007, and the
    errors of types and constants."""
    return Reader(Source(text, filename, elsewhere)).program()


class Reader(Forms):
    """Reads modules, functions, regions and operations."""

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.result = Program(source)
        self._scanned = False

    def aliases(self) -> dict[str, int]:
        """Definitions behind the module count too, so they are looked for when the first alias is met."""
        if not self._scanned:
            self._scanned = True
            tokens, known = self.tokens, self.result.aliases
            for n in range(len(tokens) - 2):
                if tokens[n + 1] == "=" and tokens[n][0] == "#":
                    known.setdefault(tokens[n], n + 2)
        return self.result.aliases

    # -- modules -----------------------------------------------------------------------------------------------------
    def program(self) -> Program:
        """The whole text: one module, or functions without one."""
        self.aliases()
        while self.tokens[self.n] != END:
            token = self.tokens[self.n]
            if token[0] in "#!" and self.tokens[self.n + 1] == "=":
                self._skip_alias()
            elif token in ("module", "builtin.module"):
                self._module()
            else:
                self._member()
        return self.result

    def _skip_alias(self) -> None:
        self.n += 2
        token = self.tokens[self.n]
        if token == END:
            self.unexpected("an attribute")
        if token in ("loc", "dense", "array") or token[0] in "#!":
            self.n += 1
            if self.tokens[self.n] in ("(", "<"):
                self.skip_balanced()
        elif token[:4] == "loc(":
            self.n += 1
        else:
            self.value()

    def _module(self) -> None:
        self.enter()
        self.n += 1
        if self.tokens[self.n][:1] == "@":
            self.result.name = self.symbol()
        if self.accept("attributes"):
            self.result.attrs = self.dictionary()
        at = self.n
        self.expect("{")
        while not self.accept("}"):
            if self.tokens[self.n] == END:
                self.fail("SHLO001", "this '{' is never closed", at, hint="is the file cut off?")
            self._member()
        self.location()
        self.leave()

    def _member(self) -> None:
        token = self.tokens[self.n]
        if token in ("func.func", "func"):
            self._function()
        elif token in ("module", "builtin.module"):
            self._module()
        elif token == "sdy.mesh":
            self.n += 1
            name = self.symbol()
            self.expect("=")
            self.result.meshes[name] = self.balanced()
            if self.tokens[self.n] == "{":
                self.dictionary()
            self.location()
        elif token[:1] == '"':
            self._generic_member(self.operation())
        else:
            self.unexpected("a function", hint="a module holds func.func operations")

    def _generic_member(self, op: Operation) -> None:
        """A module, function or mesh in the generic form, where everything is an attribute."""
        if op.name == "builtin.module" and len(op.regions) == 1:
            self.result.name = str(op.attrs.get("sym_name", self.result.name))
            self.result.attrs = op.attrs
            for member in op.regions[0].operations:
                self._generic_member(member)
        elif op.name == "func.func" and len(op.regions) == 1:
            self._generic_function(op, op.regions[0])
        elif op.name == "sdy.mesh":
            self.result.meshes[str(op.find("sym_name"))] = as_text(op.find("mesh")).removeprefix("#sdy.mesh")
        else:
            op.fail("SHLO001", f"expected a function, found '{op.name[:40]}'")

    def _generic_function(self, op: Operation, body: Region) -> None:
        name, kind = op.word("sym_name"), op.find("function_type")
        if not isinstance(kind, FunctionType):
            op.wrong("function_type", "a function type")
        if name in self.result.functions:
            op.fail("SHLO003", f"function '@{name[:40]}' is defined twice")
        if [a.type for a in body.arguments] != list(kind.operands):
            op.fail("SHLO004", f"the arguments of '@{name[:40]}' are not those of its type")
        given = op.find("arg_attrs") or ({},) * len(kind.operands)
        for argument, attrs in zip(body.arguments, given, strict=False):
            argument.attrs = attrs
        result_attrs = op.find("res_attrs") or ({},) * len(kind.results)
        results = list(zip(kind.results, result_attrs, strict=False))
        public = op.find("sym_visibility") != "private"
        calls: dict[str, int] = {}
        _collect_calls(body, calls)
        function = Function(name, public, body.arguments, results, body, op.at, calls, op.attrs)
        self.result.functions[name] = function

    # -- functions ---------------------------------------------------------------------------------------------------
    def _function(self) -> None:
        self.n += 1
        public = True
        if self.tokens[self.n] in ("public", "private", "nested"):
            public = self.tokens[self.n] == "public"
            self.n += 1
        at = self.n
        name = self.symbol()
        if name in self.result.functions:
            self.fail("SHLO003", f"function '@{name[:40]}' is defined twice", at)
        arguments: list[Argument] = []
        results: list[tuple[Shape, dict[str, Any]]] = []
        if self.tokens[self.n].startswith("() ->"):  # one token
            results = [(shape, {}) for shape in self.signature()[1]]
        elif self.tokens[self.n] != "(":
            self.fail("SHLO008", f"'@{name[:40]}' has no body", at, hint="external functions cannot be called")
        else:
            arguments = self.arguments(attributes=True)
            results = self._results() if self.accept("->") else []
        attrs = self.dictionary() if self.accept("attributes") else {}
        if self.tokens[self.n] != "{":
            self.fail("SHLO008", f"'@{name[:40]}' has no body", at, hint="external functions cannot be called")
        body = self.region(arguments)
        calls: dict[str, int] = {}
        _collect_calls(body, calls)
        self.result.functions[name] = Function(name, public, arguments, results, body, at, calls, attrs)
        self.location()

    def arguments(self, attributes: bool) -> list[Argument]:
        """``(%a: type {attributes} loc(…), …)``."""
        self.expect("(")
        found: list[Argument] = []
        while not self.accept(")"):
            if found:
                self.expect(",")
            name = self.value_name()
            self.expect(":")
            argument = Argument(name, self.type())
            if attributes and self.tokens[self.n] == "{":
                argument.attrs = self.dictionary()
            argument.place = self.location()
            found.append(argument)
        return found

    def _results(self) -> list[tuple[Shape, dict[str, Any]]]:
        if not self.accept("("):
            return [(self.type(), {})]
        found: list[tuple[Shape, dict[str, Any]]] = []
        while not self.accept(")"):
            if found:
                self.expect(",")
            shape = self.type()
            found.append((shape, self.dictionary() if self.tokens[self.n] == "{" else {}))
        return found

    # -- regions -----------------------------------------------------------------------------------------------------
    def region(self, arguments: list[Argument] | None = None) -> Region:
        """``{ ^bb0(…): operations }``."""
        self.enter()
        at = self.n
        self.expect("{")
        if arguments is None and self.tokens[self.n][:1] == "^":
            self.n += 1
            arguments = self.arguments(attributes=False) if self.tokens[self.n] == "(" else []
            self.expect(":")
        operations: list[Operation] = []
        tokens = self.tokens
        while tokens[self.n] != "}":
            if tokens[self.n] == END:
                self.fail("SHLO001", "this '{' is never closed", at, hint="is the file cut off?")
            if tokens[self.n][0] == "^":
                self.fail("SHLO005", "regions of several blocks are not supported")
            operations.append(self.operation())
        self.n += 1
        self.leave()
        return Region(arguments or [], operations, at)

    def location(self) -> int:
        """Step over a location; its token, or 0 when there is none."""
        at, token = self.n, self.tokens[self.n]
        if token[:4] == "loc(":
            self.n += 1
            return at
        if token != "loc":
            return 0
        self.n += 1
        self.skip_balanced()
        return at

    # -- operations --------------------------------------------------------------------------------------------------
    def operation(self) -> Operation:
        """Results, name, and the content of the name's form; then types and location."""
        results = self._result_names() if self.tokens[self.n][:1] == "%" else []
        at, name = self.n, self.tokens[self.n]
        if name == END:
            self.unexpected("an operation")
        self.n += 1
        if name[0] == '"':
            op = Operation(self.source, at, unquote(name), results)
            self._generic(op)
        else:
            if not (name[0].isalpha() or name[0] == "_"):
                self.n = at
                self.unexpected("an operation")
            if name in _SHORT:
                name = _SHORT[name]
            op = Operation(self.source, at, name, results)
            form = self.custom_forms.get(name)
            if form is None:
                self.plain(op)
            else:
                form(self, op)
        op.place = self.location()
        return op

    def _result_names(self) -> list[str]:
        found: list[str] = []
        while True:
            name = self.value_name()
            if self.accept(":"):
                count = self.integer()
                if not 0 < count < 100_000:
                    self.fail("SHLO001", "an operation with a result list has at least one result", self.n - 1)
                found += [f"{name}#{k}" for k in range(count)] if count > 1 else [name]
            else:
                found.append(name)
            if not self.accept(","):
                break
        self.expect("=")
        return found

    def _generic(self, op: Operation) -> None:
        """``"name"(%a) <{…}> ({…}) {…} : (types) -> types``."""
        op.operands = self.operands()
        if self.tokens[self.n] == "[":
            self.fail("SHLO005", "branches between blocks are not supported")
        if self.accept("<"):
            op.attrs = self.dictionary()
            self.expect(">")
        if self.accept("("):
            while not self.accept(")"):
                if op.regions:
                    self.expect(",")
                op.regions.append(self.region())
        if self.tokens[self.n] == "{":
            op.attrs = {**op.attrs, **self.dictionary()}
        self.expect(":")
        op.given, op.types = self.signature()

    def need_dialect(self, op: Operation) -> None:
        """Raise SHLO002 for a name that cannot be an operation's, before its form is guessed."""
        if "." not in op.name and op.name not in self.custom_forms:
            near = difflib.get_close_matches(op.name, self.custom_forms, 1)
            hint = f"did you mean '{near[0]}'?" if near else None
            op.fail("SHLO002", f"unknown operation '{op.name[:40]}'", hint=hint)


def _collect_calls(region: Region, calls: dict[str, int]) -> None:
    """Functions that operations of a region, or of regions inside, name."""
    for op in region.operations:
        for key in _CALLEES:
            if key in op.attrs:
                value = op.attrs[key]
                for one in value if isinstance(value, tuple) else (value,):
                    if isinstance(one, Symbol):
                        calls.setdefault(one, op.at)
        for inner in op.regions:
            _collect_calls(inner, calls)
