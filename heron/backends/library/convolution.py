"""convolution and select-and-scatter: kernels of our own, which do every window there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.hlo.instruction import Instruction
from heron.runtime.thunks import Thunk

if TYPE_CHECKING:
    from heron.backends.lower import Lowering


def convolution(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """One kernel: each output element sums its window."""
    return lowering.alone(i)


def select_and_scatter(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """One kernel: each operand element sums the sources of the windows that select it."""
    return lowering.alone(i)
