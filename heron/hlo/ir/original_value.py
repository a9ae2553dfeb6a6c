"""Origin: which value of the unoptimised program a value, or each part of a tuple, was; kept as text, read here."""

from __future__ import annotations

from typing import NamedTuple

from heron.hlo.ir.shape import ShapeIndex
from heron.hlo.ir.words import Words


class OriginalPart(NamedTuple):
    """Part `part` of a value was part `shape_index` of the array `name`; None where nothing is known of it."""

    part: ShapeIndex
    name: str | None
    shape_index: ShapeIndex = ()


def read_origin(text: str) -> list[OriginalPart] | None:
    """The parts ``{({"a" {0}}, {"b"})}`` names, with or without the outer braces; None for a synthetic call.

    Raises PROTO006 for other text.
    """
    w = Words(text, "origin")
    parts: list[OriginalPart] = []
    w.expect("{")
    synthetic = w.accept("[")
    if synthetic:
        w.expect("synthetic_call")
        w.expect("]")
    elif w.next != "}":
        _read_tree(w, parts, ())
    w.expect("}")
    w.end()
    return None if synthetic else parts


def _read_tree(w: Words, parts: list[OriginalPart], index: ShapeIndex) -> None:
    if not w.accept("("):
        parts.append(_read_leaf(w, index))
        return
    w.enter()
    n = 0
    while not w.accept(")"):
        if n:
            w.expect(",")
        _read_tree(w, parts, (*index, n))
        n += 1
    w.leave()


def _read_leaf(w: Words, index: ShapeIndex) -> OriginalPart:
    w.expect("{")
    if w.accept("}"):
        return OriginalPart(index, None)
    name = w.string()
    shape_index = tuple(w.integers("}")) if w.accept("{") else ()
    w.expect("}")
    return OriginalPart(index, name, shape_index)
