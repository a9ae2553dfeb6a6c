"""Changes a type or a size in all places of a program: what was written for f32 and 5 rows, for s8 and 130.

Passes and kernels choose by types and sizes: a program comes to code that nobody tried it on. Most changes give no
valid program, and are not made.
"""

from __future__ import annotations

import re
from math import prod

import numpy as np

from heron.errors import HeronError
from heron.fuzz.choices import Choices
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import ALL
from heron.hlo.text import parse
from heron.reduce.case import Case

_NAMES = tuple(t.name for t in ALL if t.kind not in ("token", "opaque"))
_TYPE = re.compile(rf"\b({'|'.join(_NAMES)})(?=\[)")
#: a number among those of a shape, or of an attribute that lists some
_SIZE = re.compile(r"(?<=[\[,{])\d+(?=[\],}])")
#: none, few, odd, around vectors, tiles and the numbers that narrow integers hold
_SIZES = (0, 1, 2, 3, 5, 7, 8, 17, 31, 32, 33, 64, 65, 127, 128, 130, 256, 260)
#: elements of an array that the evaluator still computes quickly
_MOST_ELEMENTS = 100_000


def changed_everywhere(case: Case, choices: Choices) -> Case | None:
    """The case with another type or another size; None where that is no program, or a large one. Inputs are converted,
    and repeated or cut off."""
    if "known_trip_count" in case.text:
        return None  # it would promise what is no longer so
    text = _with(_TYPE, case.text, _NAMES, choices) if choices.flag() else _with(_SIZE, case.text, _SIZES, choices)
    try:
        module = parse(text, verify=True)
    except HeronError:
        return None
    shapes = [leaf for p in module.entry.parameters for _, leaf in p.shape.leaves() if leaf.is_array]
    if len(shapes) != len(case.inputs) or any(map(_is_large, (i.shape for i in module.instructions()))):
        return None
    return Case(module, tuple(_fitted(x, s) for x, s in zip(case.inputs, shapes, strict=True)))


def _with(pattern: re.Pattern[str], text: str, options: tuple[object, ...], choices: Choices) -> str:
    """The text with one of those that match a pattern as another one."""
    before = choices.one_of(sorted({m[0] for m in pattern.finditer(text)}))
    after = str(choices.one_of(options))
    return pattern.sub(lambda m: after if m[0] == before else m[0], text)


def _is_large(shape: Shape) -> bool:
    return any(prod(leaf.dims) > _MOST_ELEMENTS for _, leaf in shape.leaves() if leaf.is_array)


def _fitted(array: np.ndarray, shape: Shape) -> np.ndarray:
    """The values as others of that type, in that many places."""
    t = shape.element_type
    if not array.size:
        return np.zeros(shape.dims, t.dtype)
    values = array.astype(np.complex128)
    with np.errstate(all="ignore"):
        converted = values.astype(t.dtype) if t.is_complex else values.real.astype(np.float64).astype(t.dtype)
    return np.resize(converted, shape.dims)
