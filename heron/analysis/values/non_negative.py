"""Finds arrays without negative elements."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from heron.hlo import facts
from heron.hlo.ir.instruction import Instruction

_DEPTH = 5
#: results for which the listed operands, by position, must not be negative: of any type, of integers, and of floats (a
#: sum of integers may wrap, and so may the absolute value of the smallest integer)
_KEPT = {"minimum": (0, 1), "select": (1, 2)}
_KEPT_INTEGERS = _KEPT | {"remainder": (0,), "clamp": (0, 2)}
_KEPT_FLOATS = _KEPT | {
    "add": (0, 1), "multiply": (0, 1), "divide": (0, 1), "maximum": (0, 1), "power": (0,), "sqrt": (0,), "rsqrt": (0,),
    "exponential": (), "abs": (), "logistic": (),
}  # fmt: skip
#: integer results of which one operand must not be negative, whichever
_KEPT_BY_ONE = {"maximum": (0, 1), "and": (0, 1)}


def never_negative(i: Instruction, depth: int = _DEPTH) -> bool:
    """Whether no element of `i` has its sign set; a NaN may be one. Looks at most `depth` instructions up."""
    if not i.shape.is_array or i.shape.element_type.is_complex or depth < 0:
        return False
    t = i.shape.element_type
    if t.is_unsigned or t.kind == "pred":
        return True
    if facts.reindexes(i):
        return never_negative(i.operands[0], depth - 1)
    if i.opcode in _MADE:
        return _MADE[i.opcode](i, depth)
    if t.is_float and i.opcode == "multiply" and i.operands[0] is i.operands[1]:
        return True
    if t.is_integer and i.opcode in _KEPT_BY_ONE:
        return any(never_negative(o, depth - 1) for o in i.operands)
    kept = (_KEPT_INTEGERS if t.is_integer else _KEPT_FLOATS).get(i.opcode)
    return kept is not None and all(never_negative(i.operands[n], depth - 1) for n in kept)


def _constant(i: Instruction, depth: int) -> bool:
    array = i.attrs["literal"].array
    return array.size <= 64 and not np.signbit(array.astype(np.float64)).any()


def _iota(i: Instruction, depth: int) -> bool:
    t = i.shape.element_type
    return not t.is_integer or i.shape.dims[i.attrs["iota_dimension"]] <= 1 << t.bits - 1


def _conversion(i: Instruction, depth: int) -> bool:
    t, source = i.shape.element_type, i.operands[0].shape.element_type
    fits = not t.is_integer or (source.is_integer and source.bits < t.bits) or source.kind == "pred"
    return fits and never_negative(i.operands[0], depth - 1)


def _element(i: Instruction, depth: int) -> bool:
    """A gather and a dynamic-slice read elements of their operand; a sort gives them in another order."""
    return never_negative(i.operands[0], depth - 1)


def _part(i: Instruction, depth: int) -> bool:
    whole = i.operands[0]
    return whole.opcode == "sort" and never_negative(whole.operands[i.attrs["index"]], depth - 1)


def _all(i: Instruction, depth: int) -> bool:
    return all(never_negative(o, depth - 1) for o in i.operands)


_MADE: dict[str, Callable[[Instruction, int], bool]] = {"constant": _constant, "iota": _iota, "convert": _conversion}
_MADE |= {"gather": _element, "dynamic-slice": _element, "sort": _element, "get-tuple-element": _part}
_MADE |= {"concatenate": _all, "pad": _all}
