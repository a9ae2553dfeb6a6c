"""Scans of one pass as custom calls: operands → what the called computation gives, and control words.

The called computation ends in the reduce-window that is the scan. The words are two arrays, flags and partial results,
by which blocks of a launch speak; they mean nothing afterwards.
"""

from __future__ import annotations

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction

TARGET = "__heron$scan"


def body_of(i: Instruction) -> Computation:
    """What computes the results; its root is the scan."""
    return i.attrs["called_computations"][0]
