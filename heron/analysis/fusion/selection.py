"""The first few elements of rows without sorting them: which `topk` a kernel selects instead."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction

#: most elements of a row that are kept in order while the others pass; more are found by a sort
MOST = 64
#: rows are at least so many times as long, where they are so short that they are sorted in registers
_LEAST_RATIO, _SHORT = 4, 16


def is_selection(i: Instruction) -> bool:
    """Whether a CPU kernel looks through the rows once and keeps the best: `topk` with a small k.

    An element and its position are one 64-bit number there.
    """
    if i.opcode != "topk" or any(i.operands[0].shape.dynamic):
        return False
    x, k = i.operands[0].shape, i.shape.at((0,)).dims[-1]
    t = x.element_type
    if t.is_complex or t.bits not in (8, 16, 32):
        return False
    row = x.dims[-1]
    return 0 < k <= MOST and x.num_elements > 0 and row >= (_LEAST_RATIO * k if row <= _SHORT else k + 1)
