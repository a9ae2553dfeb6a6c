"""A rewrite rule and a pass of one's own: ``heron opt FILE --load examples/my_passes.py -p odd-functions``."""

from __future__ import annotations

from dataclasses import dataclass

import heron
from heron.hlo.ir.instruction import Instruction
from heron.passes.rewriting.expander import Expander, home
from heron.passes.framework.registry import register
from heron.passes.rewriting.rules import Builder


@heron.rewrite("tanh", operand="negate", into="odd-functions")
def tanh_of_negate(i: Instruction, b: Builder) -> Instruction | None:
    """tanh(-x) == -tanh(x)

    n = f32[4] negate(f32[4] x)
    ROOT r = f32[4] tanh(n)
    ->
    t = f32[4] tanh(x)
    ROOT r = f32[4] negate(t)
    """
    (negated,) = i.operands
    if negated.opcode != "negate":
        return None
    return b.add("negate", [b.add("tanh", negated.operands)])


@register
@dataclass(frozen=True)
class ClampExpander(Expander):
    """Replaces clamps by a maximum and a minimum, which every machine has.

    ROOT r = f32[4] clamp(f32[4] low, f32[4] x, f32[4] high)
    ->
    m = f32[4] maximum(low, x)
    ROOT r = f32[4] minimum(m, high)
    """

    name = "clamp-expander"
    opcodes = frozenset({"clamp"})

    def expand(self, i: Instruction) -> Instruction:
        low, x, high = i.operands
        at_least = home(i).add("maximum", [_as_wide(low, i), x])
        return home(i).add("minimum", [at_least, _as_wide(high, i)])


def _as_wide(bound: Instruction, i: Instruction) -> Instruction:
    """A bound as an array like `i`: clamp takes scalars too."""
    if bound.shape.rank == i.shape.rank:
        return bound
    return home(i).add("broadcast", [bound], i.shape.with_type(bound.shape.element_type), dimensions=())
