"""Finds arrays without negative elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from heron.hlo import facts
from heron.hlo.ir.instruction import Instruction

_DEPTH = 5
#: results for which the listed operands, by position, must not be negative: of any type, of integers, and of floats (a
#: sum of integers may wrap)
_KEPT = {"minimum": (0, 1), "select": (1, 2)}
_KEPT_INTEGERS = {"remainder": (0,), "clamp": (0, 2)}
_KEPT_FLOATS = {"add": (0, 1), "divide": (0, 1), "maximum": (0, 1), "power": (0,), "sqrt": (0,), "rsqrt": (0,)}
_POSITIVE_FLOATS = frozenset({"exponential", "abs", "logistic"})


def never_negative(i: Instruction, depth: int = _DEPTH) -> bool:
    """Whether no element of `i` has its sign set; a NaN may be one. Looks at most `depth` instructions up."""
    if not i.shape.is_array or i.shape.element_type.is_complex or depth < 0:
        return False
    t = i.shape.element_type
    if t.is_unsigned or t.kind == "pred":
        return True
    if facts.reindexes(i):
        return never_negative(i.operands[0], depth - 1)
    if i.opcode in ("constant", "iota", "convert"):
        return _is_made_so(i, depth)
    if i.opcode in _KEPT:
        return _all(i, _KEPT[i.opcode], depth)
    return _integer(i, depth) if t.is_integer else _float(i, depth)


def _all(i: Instruction, operands: Sequence[int], depth: int) -> bool:
    return all(never_negative(i.operands[n], depth - 1) for n in operands)


def _is_made_so(i: Instruction, depth: int) -> bool:
    """Of a constant, an iota or a conversion."""
    t = i.shape.element_type
    if i.opcode == "constant":
        array = i.attrs["literal"].array
        return array.size <= 64 and not np.signbit(array.astype(np.float64)).any()
    if i.opcode == "iota":
        return not t.is_integer or i.shape.dims[i.attrs["iota_dimension"]] <= 1 << t.bits - 1
    source = i.operands[0].shape.element_type
    fits = not t.is_integer or (source.is_integer and source.bits < t.bits) or source.kind == "pred"
    return fits and never_negative(i.operands[0], depth - 1)


def _integer(i: Instruction, depth: int) -> bool:
    """The sum of two may wrap, and so may the absolute value of the smallest integer."""
    if i.opcode in _KEPT_INTEGERS:
        return _all(i, _KEPT_INTEGERS[i.opcode], depth)
    return i.opcode in ("maximum", "and") and any(never_negative(o, depth - 1) for o in i.operands)


def _float(i: Instruction, depth: int) -> bool:
    if i.opcode in _POSITIVE_FLOATS or i.opcode == "multiply" and i.operands[0] is i.operands[1]:
        return True
    kept = (0, 1) if i.opcode == "multiply" else _KEPT_FLOATS.get(i.opcode)
    return kept is not None and _all(i, kept, depth)
