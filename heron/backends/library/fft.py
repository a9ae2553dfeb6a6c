"""fft: by pocketfft on the CPU; on the simulated GPU the same stands in for cuFFT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.backends.library.host import call, library_call
from heron.hlo.instruction import Instruction
from heron.runtime.cuda.libraries.cufft import Fft
from heron.runtime.library.fft import Transform
from heron.runtime.thunks import Thunk

if TYPE_CHECKING:
    from heron.backends.lower import Lowering


def fft(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """One transform of all lines (planes, boxes) of the operand."""
    kind, lengths = i.fft_type, tuple(i.fft_length)
    routine = Transform(kind, lengths, lowering.threads)
    if lowering.target.kind == "cpu":
        return call(lowering, i, routine, "scipy.fft")
    return library_call(lowering, i, lambda arrays: Fft(arrays, kind, lengths), routine)
