"""fft: on the CPU by code of our own where lines stay in a cache, else by pocketfft; on a GPU by cuFFT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.backends.calls.host import call, library_call, memory_order
from heron.codegen.native.fft import obstacle, stages
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.runtime.host.fft import Transform
from heron.runtime.thunks import FftThunk, Thunk
from heron.trace import Decision

if TYPE_CHECKING:
    from heron.backends.lower import Lowering


def fft(lowering: Lowering, i: Instruction) -> list[Thunk]:
    """One transform of all lines (planes, boxes) of the operand."""
    kind, lengths = i.fft_type, tuple(i.fft_length)
    routine = Transform(kind, lengths, lowering.machine.threads)
    if lowering.target.is_gpu:
        from heron.runtime.cuda.libraries.cufft import Fft  # with the libraries of GPUs, for those alone

        return library_call(lowering, i, lambda arrays: Fft(arrays, kind, lengths), routine)
    operand = i.operands[0]
    why = _obstacle(i)
    if lowering.trace.decide(Decision(why is None, why or "lines stay in a cache", "fft", i.name, "kernel")):
        shape = operand.shape
        place, out = lowering.slice(operand), lowering.slice(i)
        scratch = lowering.buffers.scratch.get(i)
        return [FftThunk(place, out, kind, lengths, shape.dims, shape.element_type, i.name, scratch)]
    return call(lowering, i, routine, "scipy.fft")


def scratch_bytes(i: Instruction) -> int:
    """The scratch bytes that a transform by heron's own code takes on the CPU."""
    if i.opcode != "fft" or _obstacle(i) is not None:
        return 0
    is_used = any(s.target == "scratch" for s in stages(i.fft_type, tuple(i.fft_length), i.operands[0].shape.dims))
    return i.operands[0].shape.byte_size if is_used else 0


def _obstacle(i: Instruction) -> str | None:
    shape = i.operands[0].shape
    if not (_is_row_major(shape) and _is_row_major(i.shape)):
        return "arrays are not row-major"
    return obstacle(i.fft_type, tuple(i.fft_length), shape.dims, shape.element_type)


def _is_row_major(shape: Shape) -> bool:
    """Whether the last dimension is the fastest, and so on."""
    return memory_order(shape) == tuple(range(shape.rank))
