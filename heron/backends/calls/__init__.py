"""Lowering of ops that no fusion computes, one file a library call; `RULES` has the rule of each opcode.

A rule takes the lowering and the instruction and returns thunks: calls of a library, or kernels of heron's own where
the target has those. Raises GEN011 for a call that nothing computes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from heron.backends.calls.custom_call import custom_call
from heron.backends.calls.fft import fft
from heron.backends.calls.lapack import cholesky, triangular_solve
from heron.backends.convolution.lowering import convolution, select_and_scatter
from heron.hlo.ir.instruction import Instruction
from heron.runtime.thunks import Thunk

if TYPE_CHECKING:
    from heron.backends.lower import Lowering

RULES: dict[str, Callable[[Lowering, Instruction], list[Thunk]]] = {
    "cholesky": cholesky,
    "convolution": convolution,
    "custom-call": custom_call,
    "fft": fft,
    "select-and-scatter": select_and_scatter,
    "triangular-solve": triangular_solve,
}
