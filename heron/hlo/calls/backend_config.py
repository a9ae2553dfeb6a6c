"""Reader of backend_config in JSON, which accepts the same texts as XLA.

XLA takes its configurations apart with protobuf's JSON reader, so a program it printed or a person wrote may have names
without quotes, strings in single quotes, a comma behind the last member, 64-bit integers as strings, and names of
members in camel case. Members a reader does not know say nothing.
"""

from __future__ import annotations

import json
import re
from math import isfinite
from typing import Any, NoReturn

from heron.errors import HeronError
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.quoting import unquote

#: how deep objects and lists may be in each other, as in protobuf
DEPTH = 100
_TOKEN = re.compile(
    r"""\s*+(?:([{}\[\],:])|("(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+')|([\w$.+-]++)|(.))""", re.DOTALL | re.ASCII
)
_WORDS = {"true": True, "false": False, "null": None}
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_BARE = re.compile(r"[A-Za-z_$][\w$.]*")
#: digits of a number that is read as one: a longer one is in no range there is
_LONGEST = 400


# -- text to values ---------------------------------------------------------------------------------------------------
def parse(text: str) -> Any:
    """The value a text stands for: dict, list, str, int, float, bool or None. Raises ValueError, which says why."""
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return _Reader(text).whole()


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    return {_snake(name): value for name, value in members}


def _snake(name: str) -> str:
    """A member's name as the protocol buffer spells it."""
    if name.islower() or not name[:1].islower():
        return name
    return re.sub(r"[A-Z]", lambda found: "_" + found[0].lower(), name)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


class _Reader:
    """Reads the forms that Python's own reader refuses."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def whole(self) -> Any:
        found = self._value(0)
        if self.text[self.at :].strip():
            self._fail("something follows the value")
        return found

    def _fail(self, why: str) -> NoReturn:
        raise ValueError(f"{why}: character {self.at + 1}, at '{self.text[self.at :][:20].strip()}'")

    def _next(self) -> str:
        found = _TOKEN.match(self.text, self.at)
        if found is None:
            self._fail("it ends too early")
        if found[4]:
            self._fail("nothing of JSON begins so")
        self.at = found.end()
        return found[found.lastindex or 0]

    def _peek(self) -> str:
        found = _TOKEN.match(self.text, self.at)
        return "" if found is None else found[found.lastindex or 0]

    def _value(self, depth: int) -> Any:
        if depth > DEPTH:
            self._fail(f"more than {DEPTH} objects and lists are in each other")
        before, token = self.at, self._next()
        if token == "{":
            return self._members(depth)
        if token == "[":
            return self._elements(depth)
        if token[0] in "\"'":
            return _string(token)
        if token in _WORDS:
            return _WORDS[token]
        if _NUMBER.fullmatch(token) and len(token) < _LONGEST:
            return float(token) if set(token) & set(".eE") else int(token)
        self.at = before
        return self._fail("no value begins so")

    def _members(self, depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while self._peek() != "}":
            name = self._next()
            if name[0] in "\"'":
                name = _string(name)
            elif not _BARE.fullmatch(name):
                self._fail("a member has no name")
            if self._next() != ":":
                self._fail(f"no colon follows '{name[:40]}'")
            found[_snake(name)] = self._value(depth + 1)
            if self._peek() != "}" and self._next() != ",":
                self._fail(f"no comma follows '{name[:40]}'")
        self._next()
        return found

    def _elements(self, depth: int) -> list[Any]:
        found: list[Any] = []
        while self._peek() != "]":
            found.append(self._value(depth + 1))
            if self._peek() != "]" and self._next() != ",":
                self._fail("no comma follows an element")
        self._next()
        return found


def _string(token: str) -> str:
    try:
        return json.loads(token, strict=False)
    except ValueError:
        return unquote(token)


# -- what instructions say --------------------------------------------------------------------------------------------
def hints(i: Instruction) -> dict[str, Any]:
    """All that an instruction's configuration says; nothing where it has none, or one that is no object: for readers
    that can do without."""
    text = i.extras.get("backend_config")
    if not isinstance(text, str) or text[:1] != "{":
        return {}
    try:
        found = parse(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def member(given: Any, *names: str) -> dict[str, Any]:
    """The object at the end of a path of names; empty where there is none."""
    for name in names:
        given = given.get(name) if isinstance(given, dict) else None
    return given if isinstance(given, dict) else {}


def whole(value: Any, least: int, most: int) -> int | None:
    """An integer from `least` to `most`, which may be written as text, as 64-bit integers are; None for all else."""
    try:
        found = int(value) if isinstance(value, (str, int)) else int(value) if value == int(value) else None
    except (TypeError, ValueError, OverflowError):
        return None
    return found if found is not None and not isinstance(value, bool) and least <= found <= most else None


def read(i: Instruction, name: str) -> dict[str, Any]:
    """That member of a call's configuration; the whole of it where it has none (as older programs print it).

    Raises HLO170 for text that is no JSON object.
    """
    text = str(i.extras.get("backend_config", "")) or "{}"
    try:
        given = parse(text)
    except ValueError as error:
        raise bad(i, str(error)[:200]) from None
    if not isinstance(given, dict):
        raise bad(i, "it is no object")
    found = given.get(name, given)
    if not isinstance(found, dict):
        raise bad(i, f"'{name}' is no object")
    return found


def number(i: Instruction, value: Any) -> float:
    """A number, which may be written as text. Raises HLO170."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise bad(i, f"{value!r} is no number"[:200]) from None


def integer(i: Instruction, value: Any) -> int:
    """An integer of 64 bits, which may be written as text. Raises HLO170."""
    found = whole(value, -(1 << 63), (1 << 63) - 1)
    if found is None:
        raise bad(i, f"{value!r} is no integer of 64 bits"[:200])
    return found


def integers(i: Instruction, values: Any) -> tuple[int, ...]:
    """Integers written as text. Raises HLO170."""
    if not isinstance(values, list):
        raise bad(i, f"{values!r} is no list"[:200])
    return tuple([integer(i, v) for v in values])


def bad(i: Instruction, why: str) -> HeronError:
    """The error for a configuration that cannot be read."""
    return HeronError("HLO170", f"the backend_config of '{i.name}' cannot be read", where=str(i), why=why)


# -- values to text ---------------------------------------------------------------------------------------------------
def write(name: str, config: dict[str, Any]) -> str:
    """The configuration of a library's call as XLA prints it, with `config` as that member."""
    given = {
        "operation_queue_id": "0",
        name: config,
        "force_earliest_schedule": False,
        "reification_cost": [],
        "device_type": "DEVICE_TYPE_INVALID",
    }
    return json.dumps(given, separators=(",", ":"))


def plain(value: float) -> float | int | str:
    """A number as JSON shows it: without a point where it is whole; as text where JSON has no number for it."""
    if not isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    return int(value) if value == int(value) else value
