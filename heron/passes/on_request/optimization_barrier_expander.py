"""optimization-barrier-expander: barriers go once nothing is moved across them any more."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.passes.framework.registry import register
from heron.passes.rewriting.expander import Expander
from heron.records import dataclass


@register
@dataclass(frozen=True)
class OptimizationBarrierExpander(Expander):
    """Puts a barrier's operand in its place. It must run after the passes the barrier is to hold back.

    No pipeline has it: a barrier makes no code, and what would pass by it is held back to the end.

    a = f32[4] negate(f32[4] x)
    b = f32[4] opt-barrier(a)
    ROOT r = f32[4] negate(b)
    ->
    a = f32[4] negate(x)
    ROOT r = f32[4] negate(a)
    """

    name = "optimization-barrier-expander"
    opcodes = frozenset({"opt-barrier"})
    dynamic = True

    def expand(self, i: Instruction) -> Instruction:
        return i.operands[0]
