"""cse: equal instructions become one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from heron.hlo.computation import Computation
from heron.hlo.instruction import Instruction
from heron.hlo.module import Module
from heron.hlo.op import Trait
from heron.passes.base import Pass
from heron.passes.canonical import Forms
from heron.passes.context import PassContext
from heron.passes.registry import register


@register
@dataclass(frozen=True)
class Cse(Pass):
    """Merges instructions of one computation that compute the same value.

    Same op, same operands (in either order where the op commutes), same attributes; constants by their bits, called
    computations by what they do. Layouts are ignored unless ``layout_sensitive``. Instructions with side effects,
    random ones and those ordered by control edges stay apart.

    a = f32[4] add(f32[4] x, f32[4] y)
    b = f32[4] add(y, x)
    ROOT r = f32[4] multiply(a, b)
    ->
    a = f32[4] add(x, y)
    ROOT r = f32[4] multiply(a, a)
    """

    name = "cse"
    layout_sensitive: bool = False

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        forms = Forms()
        for c in module.post_order():
            changed |= self._merge(c, forms)
        return changed

    def _merge(self, c: Computation, forms: Forms) -> bool:
        seen: dict[Any, Instruction] = {}
        number: dict[Instruction, int] = {}
        merged = False
        for i in c.post_order():
            number[i] = len(number)
            if _must_stay(i):
                continue
            operands = [number[o] for o in i.operands]
            if len(operands) > 1 and Trait.COMMUTATIVE in i.op.traits and operands[0] > operands[1]:
                operands[0], operands[1] = operands[1], operands[0]
            shape = i.shape if self.layout_sensitive else i.shape.bare
            key = (i.opcode, shape, tuple(operands), forms.attributes(i))
            first = seen.setdefault(key, i)
            if first is not i:
                i.replace_uses_with(first)
                c.remove(i)
                merged = True
        return merged


def _must_stay(i: Instruction) -> bool:
    op = i.op
    if i.opcode == "parameter" or op.has_side_effect or Trait.RANDOM in op.traits:
        return True
    if i.control_predecessors or i.control_successors:
        return True
    if not i.attrs:
        return False
    return i.opcode in ("custom-call", "call", "while", "conditional", "fusion") and i.has_side_effect
