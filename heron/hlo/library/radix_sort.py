"""Radix sorts of heron's own as custom calls: the operands of a sort → its results, copies of them, control words.

The comparator is the called computation. The copies are where elements lie between the passes of the sort; they and the
control words, which blocks of a launch count and speak by, mean nothing afterwards.
"""

from __future__ import annotations

from heron.hlo.computation import Computation
from heron.hlo.instruction import Instruction

TARGET = "__heron$radixSort"


def comparator_of(i: Instruction) -> Computation:
    """What says which of two elements comes first."""
    return i.attrs["called_computations"][0]
