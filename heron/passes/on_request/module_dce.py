"""module-dce: what no result depends on goes, also where it goes round in loops."""

from __future__ import annotations

from heron.analysis.graph.demand import Needed
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.tuples import part_of
from heron.passes.simplify.dce import Dce
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ModuleDce(Pass):
    """Removes dead code of the whole module: an element of a loop's state that no result depends on is only handed on.

    Dependence is followed part by part through tuples, loops, branches and calls, so it does not matter where in the
    module a value turns out to be of no use. `while-loop-simplifier` then drops what is only handed on. No pipeline has
    it: `while-loop-simplifier` finds what only keeps itself going, loop by loop.

    body {
      s = (s32[], f32[4]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      one = s32[] constant(1)
      next = s32[] add(n, one)
      v = f32[4] get-tuple-element(s), index=1
      w = f32[4] add(v, v)
      ROOT t = (s32[], f32[4]) tuple(next, w)
    }

    condition {
      s = (s32[], f32[4]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      ten = s32[] constant(10)
      ROOT c = pred[] compare(n, ten), direction=LT
    }

    init = (s32[], f32[4]) tuple(s32[] k, f32[4] x)
    loop = (s32[], f32[4]) while(init), condition=condition, body=body
    ROOT r = s32[] get-tuple-element(loop), index=0
    ->
    body {
      s = (s32[], f32[4]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      one = s32[] constant(1)
      next = s32[] add(n, one)
      v = f32[4] get-tuple-element(s), index=1
      ROOT t = (s32[], f32[4]) tuple(next, v)
    }

    init = (s32[], f32[4]) tuple(s32[] k, f32[4] x)
    loop = (s32[], f32[4]) while(init), condition=condition, body=body
    ROOT r = s32[] get-tuple-element(loop), index=0
    """

    name = "module-dce"

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = Dce().run(module, ctx)
        bodies = dict.fromkeys(i.body for i in module.instructions() if i.opcode == "while")
        if not bodies:
            return changed
        needed = Needed(module)
        for body in bodies:
            changed |= _hand_on(body, needed)
        return Dce().run(module, ctx) or changed


def _hand_on(body: Computation, needed: Needed) -> bool:
    """Let a body leave alone what need not be computed."""
    root = body.root
    if root.opcode != "tuple" or len(body.parameters) != 1:
        return False
    idle = [n for n in range(len(root.operands)) if not needed.is_needed(root, (n,)) and not _is_handed_on(root, n)]
    for n in idle:
        root.set_operand(n, part_of(body.parameters[0], (n,)))
    return bool(idle)


def _is_handed_on(root: Instruction, n: int) -> bool:
    value = root.operands[n]
    return value.opcode == "get-tuple-element" and value.attrs["index"] == n and value.operands[0].opcode == "parameter"
