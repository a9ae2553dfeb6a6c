"""cse: equal instructions become one."""

from __future__ import annotations

from functools import cache
from typing import Any

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import REGISTRY, Trait
from heron.passes.framework.base import Pass
from heron.passes.framework.canonical import Forms
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class Cse(Pass):
    """Merges instructions of one computation that compute the same value.

    Same op, same operands (in either order where the op commutes), same attributes; constants by their bits, called
    computations by what they do. Layouts are ignored unless ``layout_sensitive``. Instructions with side effects,
    random ones and those ordered by control edges stay apart. With ``inside``, only what kernels compute is merged: no
    array in memory is needed for longer.

    a = f32[4] add(f32[4] x, f32[4] y)
    b = f32[4] add(y, x)
    ROOT r = f32[4] multiply(a, b)
    ->
    a = f32[4] add(x, y)
    ROOT r = f32[4] multiply(a, a)
    """

    name = "cse"
    layout_sensitive: bool = False
    inside: bool = False

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        forms = Forms()
        kernels = module.fusion_computations() if self.inside else set()
        for c in module.computations:
            if not self.inside or c in kernels:
                changed |= self._merge(c, forms)
        return changed

    def _merge(self, c: Computation, forms: Forms) -> bool:
        before = len(c)
        try:
            self._merge_in(c, forms)
        except KeyError:  # an operand comes after its user: bring them in order and begin again
            c.reorder(c.post_order())
            self._merge_in(c, forms)
        return len(c) < before

    def _merge_in(self, c: Computation, forms: Forms) -> None:
        seen: dict[Any, Instruction] = {}
        alike: dict[Any, Instruction] = {}  # with attributes, looked at only where the rest is the same
        number: dict[Instruction, int] = {}
        fixed, commutative = _opcodes()
        for i in c.instructions:
            number[i] = len(number)
            opcode = i.opcode
            if opcode in fixed or i.control_predecessors or i.control_successors:
                continue
            operands = [number[o] for o in i.operands]
            if opcode in commutative and operands[0] > operands[1]:
                operands[0], operands[1] = operands[1], operands[0]
            # the layout of a bitcast says which elements it gives
            shape = i.shape if self.layout_sensitive or opcode == "bitcast" else i.shape.bare
            key = (opcode, shape, *operands)
            first = seen.setdefault(key, i)
            if first is i:
                continue
            alike.setdefault((key, forms.attributes(first)), first)
            first = alike.setdefault((key, forms.attributes(i)), i)
            if first is not i and (first.shape is i.shape or not _reads_bytes(i)) and not i.has_side_effect:
                i.replace_uses_with(first)
                c.remove(i)


@cache
def _opcodes() -> tuple[frozenset[str], frozenset[str]]:
    """Opcodes never merged, and those whose first two operands may be swapped."""
    ops = REGISTRY.values()
    fixed = {op.name for op in ops if op.has_side_effect or Trait.RANDOM in op.traits}
    return frozenset(fixed | {"parameter"}), frozenset(op.name for op in ops if Trait.COMMUTATIVE in op.traits)


def _reads_bytes(i: Instruction) -> bool:
    return any(user.opcode == "bitcast" for user in i.users)
