"""The user's description of a program's arguments: ``model.mlir(f32[2,3],s32[])``, arrays, or shapes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from heron.errors import HeronError
from heron.hlo.ir import shape as shapes
from heron.hlo.ir import types
from heron.hlo.ir.shape import Shape
from heron.hlo.text.shapes import parse_array

#: an argument: its shape, or its value
Given = Shape | np.ndarray

SHAPE = re.compile(r"[a-z]\w*\[[^\]]*\](?:\{[^}]*\})?")
_NAMED = re.compile(r"(?P<file>[^()\n]+)(?P<shapes>\([^()\n]*\))")


def split(source: str) -> tuple[str, list[Given]]:
    """A file's name and the shapes in parentheses after it, if any. Raises JAX005 for malformed ones."""
    match = _NAMED.fullmatch(source)
    if match is None or Path(source).exists():
        return source, []
    return match["file"], [*listed(match["shapes"], match["file"])]


def listed(text: str, where: str) -> list[Shape]:
    """The shapes of ``(f32[2,3], s32[])``. Raises JAX005."""
    inner = text.strip()
    words = SHAPE.findall(inner[1:-1])
    if inner[-1:] != ")" or re.sub(r"\s", "", inner[1:-1]) != ",".join(re.sub(r"\s", "", w) for w in words):
        raise HeronError("JAX005", f"'{inner[:60]}' is not a list of shapes", hint="such as (f32[2,3],s32[])")
    return [one(word, where) for word in words]


def one(text: str, where: str) -> Shape:
    """A shape from its text. Raises JAX005."""
    try:
        return parse_array(text)
    except HeronError as error:
        raise HeronError("JAX005", error.what, where=where, why=error.why, hint=error.hint) from None


def given(arguments: Iterable[Any]) -> list[Given]:
    """Shapes, their texts, arrays, and objects with `dtype` and `shape`, in the importer's form. Raises JAX005."""
    return [_given(a) for a in arguments]


def _given(argument: Any) -> Given:
    if isinstance(argument, (Shape, np.ndarray)):
        return argument
    if isinstance(argument, str):
        return one(argument, argument)
    if isinstance(argument, (bool, int, float, complex, np.generic)):
        return np.asarray(argument)
    try:
        return shapes.row_major(types.of_dtype(argument.dtype), *map(int, argument.shape))
    except (AttributeError, TypeError) as error:
        what = f"a {type(argument).__name__} cannot be an argument of a program"
        raise HeronError("JAX005", what, why=str(error), hint="give an array, or a shape such as 'f32[2,3]'") from None
