"""Literals as text: the part of ``constant(...)`` between the parentheses."""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np

from heron.hlo.ir.literal import Literal
from heron.hlo.ir.shape import Shape
from heron.hlo.ir.types import ElementType
from heron.hlo.text.floats import format_all
from heron.hlo.text.literals import ELIDED, widest

#: literals with more elements are printed as ``{...}`` when large ones are elided
LARGE = 10
#: how many integers count as essential
_ESSENTIAL = 500_000
#: dimension comments such as ``/*i0=0*/`` are printed from this rank on, in all but the two innermost dimensions
COMMENTED_RANK = 4


def print_literal(literal: Literal, elide_large: bool = False) -> str:
    """The text of a literal on one line; with `elide_large`, ``{...}`` for tuples and more than 10 elements."""
    shape = literal.shape
    if elide_large and (shape.is_tuple or shape.num_elements > LARGE):
        return ELIDED
    if shape.is_tuple:
        return "( " + ", ".join(print_literal(part) for part in literal.parts) + " )"
    if not shape.dims:
        return _print_scalar(shape.element_type, literal.array.tobytes())
    if 1 < shape.rank < COMMENTED_RANK and _is_splat(literal.array):
        return _equal_rows(_words(shape, literal.array.reshape(-1)[:1])[0], shape.dims)
    return _nest(_words(shape, literal.array), shape.dims)


def print_digest(literal: Literal) -> str:
    """``{...#0a1b…}``: a digest of the bytes in the values' place."""
    return f"{{...#{literal.key.hex()}}}"


def print_essential(literal: Literal) -> str:
    """``0`` or ``1`` for all zeros or ones, integers in full, ``{...}`` for the values a model happens to have."""
    shape = literal.shape
    if not shape.is_tuple:
        with np.errstate(invalid="ignore"):
            for value in (0, 1):
                if bool((literal.array == value).all()):
                    return str(value)
    integers = all(s.element_type.is_integer and s.num_elements <= _ESSENTIAL for _, s in shape.leaves())
    return print_literal(literal) if integers else ELIDED


@lru_cache(maxsize=1024)
def _print_scalar(element_type: ElementType, data: bytes) -> str:
    array = np.frombuffer(data, element_type.dtype)
    if element_type.kind == "pred":
        return "true" if array[0] else "false"
    return _format(element_type, array)[0]


def _words(shape: Shape, array: np.ndarray) -> list[str]:
    if shape.element_type.kind == "pred":
        return ["1" if v else "0" for v in array.reshape(-1).tolist()]
    return _format(shape.element_type, array)


def _format(element_type: ElementType, array: np.ndarray) -> list[str]:
    if element_type.is_complex:
        flat = np.ascontiguousarray(array).reshape(-1)
        parts = format_all(element_type.component, flat.view(element_type.component.dtype))
        return [f"({re_}, {im})" for re_, im in zip(parts[::2], parts[1::2], strict=True)]
    if _is_splat(array):  # a list of Python's numbers takes six times the memory
        return _format(element_type, array.reshape(-1)[:1]) * array.size
    if element_type.is_float:
        return format_all(element_type, array)
    return list(map(str, array.reshape(-1).astype(widest(element_type)).tolist()))


def _is_splat(array: np.ndarray) -> bool:
    """Whether there are several elements, all with the same bits."""
    if array.size < 2 or array.dtype.kind == "c":
        return False
    bits = np.ascontiguousarray(array).reshape(-1).view(f"u{array.itemsize}")
    return bool((bits == bits[0]).all())


def _equal_rows(word: str, dims: tuple[int, ...]) -> str:
    """The text of equal elements: of equal rows one is made."""
    part = word if len(dims) == 1 else _equal_rows(word, dims[1:])
    text = ", ".join([part] * dims[0])
    return f"{{ {text} }}" if dims[0] > 1 or len(dims) > 1 else f"{{{text}}}"


def _nest(words: list[str], dims: tuple[int, ...]) -> str:
    if len(dims) == 1:
        return "{" + ", ".join(words) + "}"
    return _level(words, 0, prod(dims), dims, 0, "")


def _level(words: list[str], begin: int, count: int, dims: tuple[int, ...], depth: int, comment: str) -> str:
    """The part ``words[begin : begin + count]``, which fills the dimensions from `depth` on."""
    size = dims[depth]
    if depth == len(dims) - 1:
        row = ", ".join(words[begin : begin + size])
        return f"{{ {row} }}" if size > 1 else f"{{{row}}}"
    if not size:
        return "{ " + (comment or " ") + "}"
    step = count // size
    commented = len(dims) >= COMMENTED_RANK and depth <= len(dims) - 3
    rows = [
        _level(words, begin + k * step, step, dims, depth + 1, f"/*i{depth}={k}*/ " if commented else "")
        for k in range(size)
    ]
    return "{ " + comment + ", ".join(rows) + " }"
