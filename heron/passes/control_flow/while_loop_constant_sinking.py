"""while-loop-constant-sinking: loops know the constants they are given."""

from __future__ import annotations

from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.control_flow.model.loop_state import invariant_elements, is_plain, reads
from heron.passes.control_flow.model.ownership import own_computations
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class WhileLoopConstantSinking(Pass):
    """Uses a constant inside a loop instead of carrying it through, where no round changes it.

    Broadcasts of scalar constants count as constants. `while-loop-simplifier` removes state that is then carried for
    nothing.

    body {
      s = (s32[], s32[]) parameter(0)
      v = s32[] get-tuple-element(s), index=0
      k = s32[] get-tuple-element(s), index=1
      w = s32[] add(v, k)
      ROOT t = (s32[], s32[]) tuple(w, k)
    }

    condition {
      s = (s32[], s32[]) parameter(0)
      v = s32[] get-tuple-element(s), index=0
      ten = s32[] constant(10)
      ROOT c = pred[] compare(v, ten), direction=LT
    }

    two = s32[] constant(2)
    init = (s32[], s32[]) tuple(s32[] x, two)
    ROOT loop = (s32[], s32[]) while(init), condition=condition, body=body
    ->
    body {
      s = (s32[], s32[]) parameter(0)
      v = s32[] get-tuple-element(s), index=0
      two = s32[] constant(2)
      w = s32[] add(v, two)
      k = s32[] get-tuple-element(s), index=1
      ROOT t = (s32[], s32[]) tuple(w, k)
    }

    ROOT loop = (s32[], s32[]) while(init), condition=condition, body=body
    """

    name = "while-loop-constant-sinking"
    looks_for = frozenset({"while"})

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.computations_to_rewrite():
            for i in c.instructions:
                if i.opcode == "while" and i.operands[0].opcode == "tuple" and is_plain(i):
                    changed |= _sink(i)
        return changed


def _sink(loop: Instruction) -> bool:
    init = loop.operands[0]
    known = [n for n in invariant_elements(loop) if _is_constant(init.operands[n])]
    wanted = [n for n in known if _uses(loop.body, n) or _uses(loop.condition, n)]
    if not wanted:
        return False
    own_computations(loop)
    for c in (loop.body, loop.condition):
        for n in wanted:
            for read in _uses(c, n):
                constant = _copy_into(c, init.operands[n])
                others = [user for user in read.users if not (user is c.root and c is loop.body)]
                read.replace_uses_with(constant, only=others)
                if c is loop.body and c.root in read.users and c.root.operands.count(read) > 1:
                    for place, operand in enumerate(c.root.operands):
                        if operand is read and place != n:
                            c.root.set_operand(place, constant)
    return True


def _uses(c: Computation, n: int) -> list[Instruction]:
    """Reads of element `n` in a body or condition that something but handing it on needs."""
    found = (reads(c.parameters[0]) or {}).get(n, [])
    return [i for i in found if any(user is not c.root for user in i.users) or i is c.root]


def _is_constant(i: Instruction) -> bool:
    return i.opcode == "constant" or i.opcode == "broadcast" and i.operands[0].opcode == "constant"


def _copy_into(c: Computation, i: Instruction) -> Instruction:
    return c.attach(i.clone([_copy_into(c, o) for o in i.operands]))
