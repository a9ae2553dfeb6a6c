"""What lowers ops no fusion computes, one file a library; `RULES` is what `Lowering` looks into, by opcode.

A rule takes the lowering and the instruction and gives thunks: a call into a library, or a kernel of our own where that
is what the target has. Raises GEN011 for what the library does not do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from heron.backends.library.convolution import convolution, select_and_scatter
from heron.backends.library.custom_calls import custom_call
from heron.backends.library.fft import fft
from heron.backends.library.linalg import cholesky, triangular_solve
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
