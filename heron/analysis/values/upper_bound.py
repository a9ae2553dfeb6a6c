"""Upper bounds of integers in an array, from iotas and constants: indices and counters."""

from __future__ import annotations

from heron.hlo.facts import accumulates, reindexes
from heron.hlo.ir.instruction import Instruction

_DEPTH = 8


def upper_bound(i: Instruction, depth: int = _DEPTH) -> int | None:
    """A number that no element exceeds, while none is negative; None when nothing of the kind is known.

    Looks at most `depth` instructions up, and only at scalar constants.
    """
    t = i.shape.element_type if i.shape.is_array else None
    if t is None or not t.is_integer or depth < 0:
        return None
    found = _bound(i, depth - 1)
    limit = (1 << t.bits - t.is_signed) - 1
    return found if found is not None and found <= limit else None


def _bound(i: Instruction, depth: int) -> int | None:
    """The bound were there no largest integer."""
    opcode = i.opcode
    if opcode == "constant":
        value = int(i.attrs["literal"].array) if i.shape.rank == 0 else -1
        return value if value >= 0 else None
    if opcode == "iota":
        return max(i.shape.dims[i.attrs["iota_dimension"]] - 1, 0)
    if reindexes(i) or opcode == "convert":
        return upper_bound(i.operands[0], depth)
    if accumulates(i.op):
        a, b = (upper_bound(o, depth) for o in i.operands)
        if a is None or b is None:
            return None
        return a + b if opcode == "add" else a * b
    if opcode == "and":
        return min((b for o in i.operands if (b := upper_bound(o, depth)) is not None), default=None)
    return None
