"""fft: by pocketfft on the CPU; on the simulated GPU the same stands in for cuFFT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.backends.library.host import call
from heron.hlo.instruction import Instruction
from heron.runtime.library.fft import Transform
from heron.runtime.thunks import Thunk

if TYPE_CHECKING:
    from heron.backends.lower import Lowering


def fft(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """One transform of all lines (planes, boxes) of the operand."""
    library = "scipy.fft" if lowering.target.kind == "cpu" else "cufft"
    return call(lowering, i, Transform(i.fft_type, tuple(i.fft_length), lowering.threads), library)
