"""Which arrays have no negative element."""

from __future__ import annotations

import numpy as np

from heron.hlo.facts import reindexes
from heron.hlo.ir.instruction import Instruction

_DEPTH = 5


def never_negative(i: Instruction, depth: int = _DEPTH) -> bool:
    """Whether no element of `i` has its sign set; a NaN may be one. Looks at most `depth` instructions up."""
    if not i.shape.is_array or i.shape.element_type.is_complex or depth < 0:
        return False
    t, opcode, operands = i.shape.element_type, i.opcode, i.operands
    if t.is_unsigned or t.kind == "pred":
        return True
    if reindexes(i):
        return never_negative(operands[0], depth - 1)
    if opcode == "constant":
        array = i.attrs["literal"].array
        return array.size <= 64 and not np.signbit(array.astype(np.float64)).any()
    if opcode == "iota":
        return not t.is_integer or i.shape.dims[i.attrs["iota_dimension"]] <= 1 << t.bits - 1
    if opcode == "convert":
        source = operands[0].shape.element_type
        fits = not t.is_integer or (source.is_integer and source.bits < t.bits) or source.kind == "pred"
        return fits and never_negative(operands[0], depth - 1)
    if opcode in ("minimum", "select"):
        return all(never_negative(o, depth - 1) for o in operands[-2:])
    if t.is_integer:
        # the sum of two may wrap, and so may the absolute value of the smallest integer
        if opcode == "clamp":
            return never_negative(operands[0], depth - 1) and never_negative(operands[2], depth - 1)
        if opcode == "remainder":
            return never_negative(operands[0], depth - 1)
        return opcode in ("maximum", "and") and any(never_negative(o, depth - 1) for o in operands)
    match opcode:
        case "exponential" | "abs" | "logistic":
            return True
        case "multiply":
            return operands[0] is operands[1] or all(never_negative(o, depth - 1) for o in operands)
        case "add" | "divide" | "maximum":
            return all(never_negative(o, depth - 1) for o in operands)
        case "power" | "sqrt" | "rsqrt":
            return never_negative(operands[0], depth - 1)
    return False
