"""Readers and printers of attribute values, by their `AttrKind`.

One pair of functions per kind; no op is named here. Readers get the parser at the value's first token, the
attribute's declaration and its name; printers get the value and the printer.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from heron.hlo.ir.literal import Literal
from heron.hlo.ir.op import Attr, AttrKind
from heron.hlo.ir.quoting import quote
from heron.hlo.ir.shape import tuple_
from heron.hlo.text import structured
from heron.hlo.text.literal_printer import print_literal
from heron.hlo.text.literals import LiteralError, parse_literal
from heron.hlo.text.nearest import nearest

if TYPE_CHECKING:
    from heron.hlo.ir.shape import Shape
    from heron.hlo.text.instructions import InstructionParser
    from heron.hlo.text.printer import Printer

Read = Callable[["InstructionParser", Attr, str], Any]
Print = Callable[[Any, "Printer"], str]


# -- reading ---------------------------------------------------------------------------------------------------------
def _read_enum(p: InstructionParser, attr: Attr, name: str) -> str:
    word = p.word(f"a word for {name}")
    if word not in attr.choices and (not attr.choices or word.lower() in attr.choices):
        word = word.lower()  # as XLA reads those that it prints in small letters
    if attr.choices and word not in attr.choices:
        p.fail(
            "TXT004",
            f"{name} cannot be '{word[:40]}'",
            p.n - 1,
            why="it is one of " + ", ".join(attr.choices),
            hint=nearest(word, attr.choices),
        )
    return word


def _read_computations(p: InstructionParser, _attr: Attr, _name: str) -> tuple[Any, ...]:
    if p.tokens[p.n][:1] == "{":
        return p.braced(p.computation_reference)
    found = [p.computation_reference()]  # without braces: calls=a
    return tuple(found)


def _read_literal(p: InstructionParser, attr: Attr, name: str) -> Any:
    """A shape, then the value, or a tuple of those in parentheses (custom-call)."""
    if p.accept("("):
        p.enter()
        parts: list[Literal] = []
        while not p.accept(")"):
            if parts:
                p.expect(",")
            parts.append(_read_literal(p, attr, name))
        p.depth -= 1
        return Literal(tuple_([part.shape for part in parts]), parts)
    shape: Shape = p.shape()
    first = p.n
    text = p.raw()
    try:
        return parse_literal(text, shape, p.elided_as_zero, p.elsewhere)
    except LiteralError as error:
        p.fail(error.code, f"{name}: {error.what}", first, why=error.why, hint=error.hint)


READ: dict[AttrKind, Read] = {
    AttrKind.INT: lambda p, attr, name: p.integer(f"an integer for {name}"),
    AttrKind.FLOAT: lambda p, attr, name: p.number(),
    AttrKind.BOOL: lambda p, attr, name: p.boolean(),
    AttrKind.STRING: lambda p, attr, name: p.string(),
    AttrKind.ENUM: _read_enum,
    AttrKind.INTS: lambda p, attr, name: p.ints(),
    AttrKind.INT_LISTS: lambda p, attr, name: p.braced(p.ints),
    AttrKind.COMPUTATION: lambda p, attr, name: p.computation_reference(),
    AttrKind.COMPUTATIONS: _read_computations,
    AttrKind.SLICES: lambda p, attr, name: p.braced(lambda: structured.read_slice(p)),
    AttrKind.PADDING: lambda p, attr, name: structured.read_padding(p),
    AttrKind.WINDOW: lambda p, attr, name: structured.read_window(p),
    AttrKind.DIM_LABELS: lambda p, attr, name: structured.read_dim_labels(p),
    AttrKind.LITERAL: _read_literal,
    AttrKind.SHAPE: lambda p, attr, name: p.shape(),
    AttrKind.SHAPES: lambda p, attr, name: p.braced(p.shape),
    AttrKind.WORDS: lambda p, attr, name: p.braced(lambda: p.word("a word").lower()),
    AttrKind.RAW: lambda p, attr, name: p.carried(name),
    AttrKind.REPLICA_GROUPS: lambda p, attr, name: p.carried("replica_groups"),
    AttrKind.PAIRS: lambda p, attr, name: p.braced(lambda: structured.read_pair(p)),
    AttrKind.ALIASING: lambda p, attr, name: p.braced(lambda: structured.read_alias(p)),
}


# -- printing --------------------------------------------------------------------------------------------------------
@lru_cache(maxsize=4096)
def print_ints(values: tuple[int, ...]) -> str:
    """``{1,2}``."""
    return "{" + ",".join(map(str, values)) + "}"


def _print_lists(values: tuple[tuple[int, ...], ...]) -> str:
    return "{" + ",".join(map(print_ints, values)) + "}"


def _print_literal(literal: Literal, elide: bool) -> str:
    if literal.shape.is_tuple:
        return "( " + ", ".join(_print_literal(part, elide) for part in literal.parts) + " )"
    return f"{literal.shape.text} {print_literal(literal, elide)}"


def _print_float(value: float) -> str:
    short = f"{value:.6g}"
    return short if float(short) == value else repr(value)


PRINT: dict[AttrKind, Print] = {
    AttrKind.INT: lambda v, p: str(v),
    AttrKind.FLOAT: lambda v, p: _print_float(v),
    AttrKind.BOOL: lambda v, p: "true" if v else "false",
    AttrKind.STRING: lambda v, p: quote(v),
    AttrKind.ENUM: lambda v, p: v,
    AttrKind.INTS: lambda v, p: print_ints(v),
    AttrKind.INT_LISTS: lambda v, p: _print_lists(v),
    AttrKind.COMPUTATION: lambda v, p: p.computation_name(v),
    AttrKind.COMPUTATIONS: lambda v, p: "{" + ", ".join(map(p.computation_name, v)) + "}",
    AttrKind.SLICES: lambda v, p: structured.print_slices(v),
    AttrKind.PADDING: lambda v, p: structured.print_padding(v),
    AttrKind.WINDOW: lambda v, p: structured.print_window(v),
    AttrKind.DIM_LABELS: lambda v, p: structured.print_dim_labels(v),
    AttrKind.LITERAL: lambda v, p: _print_literal(v, p.options.elide_large_constants),
    AttrKind.SHAPE: lambda v, p: v.text,
    AttrKind.SHAPES: lambda v, p: "{" + ", ".join(s.text for s in v) + "}",
    AttrKind.WORDS: lambda v, p: "{" + ",".join(v) + "}",
    AttrKind.RAW: lambda v, p: v,
    AttrKind.REPLICA_GROUPS: lambda v, p: v,
    AttrKind.PAIRS: lambda v, p: _print_lists(v),
    AttrKind.ALIASING: lambda v, p: "{" + ", ".join(map(structured.print_alias, v)) + "}",
}
