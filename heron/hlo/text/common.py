"""Annotations of any instruction: metadata, sharding, frontend attributes, backend configuration and others.

Their values live in `Instruction.extras` under the text name, except metadata (a slot) and control predecessors
(edges). heron's core only carries sharding, statistics, origin and result accuracy, so these stay text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from heron.hlo.ir.metadata import NUMBERS, STRINGS, Metadata
from heron.hlo.ir.quoting import end_of_dictionary, quote
from heron.hlo.text.cursor import Cursor
from heron.hlo.text.lexer import WORD
from heron.hlo.text.nearest import nearest

#: text name -> reader of the value
READ: dict[str, Callable[[Cursor], Any]] = {
    "parameter_replication": lambda p: p.braced(p.boolean),
    "sharding": lambda p: p.carried("sharding"),
    "frontend_attributes": lambda p: read_frontend_attributes(p),
    "statistics": lambda p: p.carried("statistics"),
    "origin": lambda p: p.carried("origin"),
    "backend_config": lambda p: read_config(p) or None,
}

PRINT: dict[str, Callable[[Any], str]] = {
    "parameter_replication": lambda v: "{" + ",".join("true" if b else "false" for b in v) + "}",
    "sharding": str,
    "frontend_attributes": lambda v: print_frontend_attributes(v),
    "statistics": str,
    "result_accuracy": str,
    "origin": str,
    "backend_config": lambda v: print_config(v),
}

# -- metadata --------------------------------------------------------------------------------------------------------
_CARRIED = ("deduplicated_name", "metadata_payload", "profile_type", "scheduling_name")


def read_metadata(p: Cursor) -> Metadata | None:
    """``{op_name="..." source_line=3 ...}``, None for ``{}``; fields heron does not use are kept as text."""
    fields: dict[str, Any] = {}
    extra: list[tuple[str, str]] = []
    if p.tokens[p.n] == "{}":
        p.n += 1
        return None
    p.expect("{")
    while not p.accept("}"):
        p.accept(",")
        name = p.word("a metadata field")
        if name in fields:
            p.fail("TXT006", f"'{name}' is given twice", p.n - 1)
        p.expect("=")
        if name in STRINGS:
            fields[name] = p.string()
        elif name in NUMBERS:
            fields[name] = p.integer()
        elif name == "stack_frame_id":
            fields[name], p.framed = p.integer(), True
        elif name in _CARRIED:
            extra.append((name, _metadata_value(p)))
        else:
            known = (*STRINGS, *NUMBERS, "stack_frame_id", *_CARRIED)
            p.fail("TXT004", f"metadata has no '{name[:40]}'", p.n - 2, why=", ".join(known), hint=nearest(name, known))
    return Metadata(**fields, extra=tuple(extra))


def _metadata_value(p: Cursor) -> str:
    token = p.tokens[p.n]
    if token[:1] == "{":
        return p.raw()
    if token[:1] in ('"', "'"):
        return quote(p.string())
    if token[:1] in ("", ",", "}"):
        p.unexpected("a value")
    p.n += 1
    return token


# -- strings that may be dictionaries --------------------------------------------------------------------------------
def read_config(p: Cursor) -> str:
    """A string in quotes, or a dictionary in braces, which is kept as it is written."""
    if p.tokens[p.n][:1] in ('"', "'"):
        return p.string()
    if p.tokens[p.n][:1] != "{":
        p.unexpected("a string or a dictionary in braces")
    return p.dictionary()


def print_config(text: str) -> str:
    """Braces stay bare, other strings are quoted."""
    return text if is_dictionary(text) else quote(text)


def is_dictionary(text: str) -> bool:
    """Whether a text is one pair of balanced braces, strings inside respected."""
    return text[:1] == "{" and end_of_dictionary(text) == len(text)


def read_frontend_attributes(p: Cursor) -> dict[str, str]:
    """``{name="text",name={...}}``; names that are no words are in quotes."""
    if p.tokens[p.n] == "{}":
        p.n += 1
        return {}
    found: dict[str, str] = {}
    p.expect("{")
    while True:
        name = p.string() if p.tokens[p.n][:1] == '"' else p.word("the name of a frontend attribute")
        if name in found:
            p.fail("TXT006", f"'{name[:40]}' is given twice", p.n - 1)
        p.expect("=")
        found[name] = read_config(p)
        if not p.accept(","):
            break
    p.expect("}")
    return found


def print_frontend_attributes(values: dict[str, str]) -> str:
    """By name."""
    names = {name: name if WORD.fullmatch(name) else quote(name) for name in sorted(values)}
    return "{" + ",".join(f"{text}={print_config(values[name])}" for name, text in names.items()) + "}"
