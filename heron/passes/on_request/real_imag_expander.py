"""real-imag-expander: real and imaginary parts of reals."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import splat
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class RealImagExpander(Expander):
    """The real part of a real is itself, its imaginary part is zero.

    No pipeline has it: kernels do the same.

    a = f32[4] real(f32[4] x)
    b = f32[4] imag(x)
    ROOT r = f32[4] add(a, b)
    ->
    zero = f32[] constant(0)
    zeros = f32[4] broadcast(zero), dimensions={}
    ROOT r = f32[4] add(x, zeros)
    """

    name = "real-imag-expander"
    opcodes = frozenset({"real", "imag"})

    def matches(self, i: Instruction) -> bool:
        return not i.operands[0].shape.element_type.is_complex

    def expand(self, i: Instruction) -> Instruction:
        return i.operands[0] if i.opcode == "real" else splat(home(i), i.shape, 0)
