"""Lowering of ops that no fusion computes, one file a library call; `RULES` has the rule of each opcode.

A rule takes the lowering and the instruction and returns thunks: calls of a library, or kernels of heron's own where
the target has those. Raises GEN011 for a call that nothing computes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from heron.hlo.ir.instruction import Instruction
from heron.later import Later
from heron.runtime.thunks import Thunk

if TYPE_CHECKING:
    from heron.backends.lower import Lowering

RULES: Mapping[str, Callable[[Lowering, Instruction], list[Thunk]]] = Later(
    {
        "cholesky": "heron.backends.calls.lapack:cholesky",
        "convolution": "heron.backends.convolution.lowering:convolution",
        "custom-call": "heron.backends.calls.custom_call:custom_call",
        "fft": "heron.backends.calls.fft:fft",
        "select-and-scatter": "heron.backends.convolution.lowering:select_and_scatter",
        "triangular-solve": "heron.backends.calls.lapack:triangular_solve",
    }
)
