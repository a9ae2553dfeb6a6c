"""Locations: ``loc("jit(f)/add"(callsite("f"("model.py":3:4) at …)))`` as `Metadata` and a name for the instruction.

A name ending with a colon is the kind of a JAX primitive; a name without is the path of scopes that leads to the
operation. The file and line are those of the innermost frame. Places are read when asked for, each once.
"""

from __future__ import annotations

import re

from heron.frontends.stablehlo.cursor import Cursor
from heron.frontends.stablehlo.lexer import LOCATION, Source
from heron.frontends.stablehlo.syntax import plain
from heron.hlo.ir.metadata import Metadata
from heron.records import dataclass

_MAX_FRAMES = 60
_TOKEN = re.compile(rf"loc\((?:{LOCATION})\)")


@dataclass(frozen=True, slots=True)
class Place:
    """The content of a location."""

    op_name: str = ""
    op_type: str = ""
    file: str = ""
    line: int = 0
    column: int = 0
    end_line: int = 0
    end_column: int = 0


_NOWHERE = Place()
#: metadata, and what to name the instruction after
Origin = tuple[Metadata | None, str]
NO_ORIGIN: Origin = (None, "")


class Locations(Cursor):
    """The locations of one text."""

    def __init__(self, source: Source, aliases: dict[str, int]) -> None:
        super().__init__(source)
        self._aliases = aliases
        self._places: dict[str, Place] = {}
        self._origins: dict[str, Origin] = {}

    def origin(self, at: int) -> Origin:
        """Metadata and name for the location at token `at` (0: none)."""
        if not at:
            return NO_ORIGIN
        token = self.tokens[at]
        if token == "loc":
            return _origin(self._read(at))
        found = self._origins.get(token)
        if found is None:
            found = self._origins[token] = _origin(self._token(at, 0))
        return found

    def _read(self, at: int, depth: int = 0) -> Place:
        """The location that begins at token `at` with ``loc``."""
        before, self.n = self.n, at + 1
        self.expect("(")
        found = self._location(depth)
        self.expect(")")
        self.n = before
        return found

    def _alias(self, name: str, at: int, depth: int) -> Place:
        if depth > _MAX_FRAMES:
            return _NOWHERE
        found = self._places.get(name)
        if found is None:
            place = self._aliases.get(name)
            if place is None:
                self.fail("SHLO003", f"location '{name[:40]}' is not defined", at)
            token = self.tokens[place]
            if token[:4] == "loc(":
                found = self._token(place, depth + 1)
            elif token == "loc":
                found = self._read(place, depth + 1)
            else:
                self.fail("SHLO001", f"'{name[:40]}' is not a location", at)
            self._places[name] = found
        return found

    def _token(self, at: int, depth: int) -> Place:
        """The location that token `at` is."""
        self._check(depth)
        parts = _TOKEN.fullmatch(self.tokens[at])
        assert parts is not None
        alias, name, inner, line, column, end_line, end_column, callee, caller = parts.groups()
        if alias is not None:
            return self._alias(alias, at, depth + 1)
        if callee is not None:
            found = self._alias(callee, at, depth + 1)
            return found if found.file else _called(found, self._alias(caller, at, depth + 1))
        if line is not None:
            return Place("", "", name, int(line), int(column), int(end_line or line), int(end_column or 0))
        return Place(name) if inner is None else _named(name, self._alias(inner, at, depth + 1))

    def _check(self, depth: int) -> None:
        if depth > _MAX_FRAMES:
            self.fail("SHLO007", "this location is nested too deeply", why=f"the limit is {_MAX_FRAMES} levels")

    def _location(self, depth: int) -> Place:
        """The text inside the parentheses."""
        self._check(depth)
        at, token = self.n, self.tokens[self.n]
        if token[:1] == '"':
            return self._named(depth)
        if token[:4] == "loc(":
            self.n += 1
            return self._token(at, depth + 1)
        if token == "loc":
            self.n += 1
            self.expect("(")
            found = self._location(depth + 1)
            self.expect(")")
            return found
        if token[:1] == "#":
            self.n += 1
            return self._alias(token, at, depth + 1)
        if token == "callsite":
            self.n += 1
            return self._call_site(at + 1, depth)
        if token == "fused":
            return self._fused(depth)
        self.word("a location")
        return _NOWHERE  # unknown

    def _call_site(self, opening: int, depth: int) -> Place:
        """``callsite(callee at caller)``; callers, of which there may be many, count only if the callee has no file."""
        self.expect("(")
        callee = self._location(depth + 1)
        if callee.file:
            self.n = opening
            self.skip_balanced()
            return callee
        self.expect("at")
        caller = self._location(depth + 1)
        self.expect(")")
        return _called(callee, caller)

    def _named(self, depth: int) -> Place:
        """``"name"``, ``"name"(location)`` or ``"file":line:column to :column``."""
        name = self.string()
        if self.accept(":"):
            return self._position(name)
        if not self.accept("("):
            return Place(op_name=name)
        inner = self._location(depth + 1)
        self.expect(")")
        return _named(name, inner)

    def _position(self, file: str) -> Place:
        line = self.integer()
        self.expect(":")
        column = self.integer()
        end_line, end_column = line, 0
        if self.accept("to"):
            if not self.accept(":"):
                end_line = self.integer()
                self.expect(":")
            end_column = self.integer()
        return Place("", "", file, line, column, end_line, end_column)

    def _fused(self, depth: int) -> Place:
        """The first of several that has a place."""
        self.n += 1
        if self.tokens[self.n] == "<":
            self.skip_balanced()
        self.expect("[")
        found = [self._location(depth + 1)]
        while self.accept(","):
            found.append(self._location(depth + 1))
        self.expect("]")
        return next((p for p in found if p.file), found[0])


def _named(name: str, place: Place) -> Place:
    """The place under a name, which is the kind of a primitive or the path of scopes."""
    named = (place.op_name, name[:-1]) if name.endswith(":") else (name, place.op_type)
    return Place(*named, *_span(place))


def _called(callee: Place, caller: Place) -> Place:
    """The callee's name at the caller's place."""
    return Place(callee.op_name, callee.op_type, *_span(caller))


def _span(place: Place) -> tuple[str, int, int, int, int]:
    return place.file, place.line, place.column, place.end_line, place.end_column


def _origin(place: Place) -> Origin:
    if place is _NOWHERE:
        return NO_ORIGIN
    last = (place.op_name.rpartition("/")[2] or place.op_type).rstrip(":")
    name = plain(last[:60], "_") if last else ""
    if not place.file and "/" not in place.op_name and not place.op_type:
        return None, name  # the name of an argument
    metadata = Metadata(
        op_type=place.op_type,
        op_name=place.op_name,
        source_file=place.file,
        source_line=place.line,
        source_end_line=place.end_line,
        source_column=place.column,
        source_end_column=place.end_column,
    )
    return metadata, name
