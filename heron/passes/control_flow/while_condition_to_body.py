"""while-condition-to-body: the condition of the next round is computed at the end of a round."""

from __future__ import annotations

from collections.abc import Sequence

from heron.analysis.values.trip_count import trip_count
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.control_flow.model.loop_state import add_elements, is_plain
from heron.passes.control_flow.model.ownership import own_computations
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import is_movable
from heron.passes.rewriting.tuples import part_of
from heron.records import dataclass


@register
@dataclass(frozen=True)
class WhileConditionToBody(Pass):
    """Carries the condition of a loop through its state, so that testing it takes no kernel.

    A condition on scalars is computed where the scalars are: by the kernels of the body that make them, and once before
    the loop. The rest of the condition reads an element of the state. Loops whose trips are known are left as they are:
    whoever drives them counts. So are conditions that compute more than scalars.

    body {
      s = (s32[], f32[4]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      v = f32[4] get-tuple-element(s), index=1
      one = s32[] constant(1)
      half = s32[] shift-right-logical(n, one)
      w = f32[4] add(v, v)
      ROOT t = (s32[], f32[4]) tuple(half, w)
    }

    condition {
      s = (s32[], f32[4]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      zero = s32[] constant(0)
      ROOT c = pred[] compare(n, zero), direction=GT
    }

    init = (s32[], f32[4]) tuple(s32[] a, f32[4] x)
    loop = (s32[], f32[4]) while(init), condition=condition, body=body
    ROOT r = f32[4] get-tuple-element(loop), index=1
    ->
    body {
      s = (s32[], f32[4], pred[]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      one = s32[] constant(1)
      half = s32[] shift-right-logical(n, one)
      v = f32[4] get-tuple-element(s), index=1
      w = f32[4] add(v, v)
      zero = s32[] constant(0)
      again = pred[] compare(half, zero), direction=GT
      ROOT t = (s32[], f32[4], pred[]) tuple(half, w, again)
    }

    condition {
      s = (s32[], f32[4], pred[]) parameter(0)
      ROOT c = pred[] get-tuple-element(s), index=2
    }

    zero = s32[] constant(0)
    first = pred[] compare(s32[] a, zero), direction=GT
    init = (s32[], f32[4], pred[]) tuple(a, f32[4] x, first)
    loop = (s32[], f32[4], pred[]) while(init), condition=condition, body=body
    ROOT r = f32[4] get-tuple-element(loop), index=1
    """

    name = "while-condition-to-body"
    constraints = (
        Constraint("while-loop-unroller", "while-condition-to-body", "trips are counted by conditions"),
        Constraint("while-loop-invariant-code-motion", "while-condition-to-body", "trips are counted by conditions"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for i in list(module.instructions()):
            if i.opcode != "while" or i.parent is None or not is_plain(i):
                continue
            why_not = _against(i)
            ctx.decide(not why_not, why_not or "the body computes it from its own scalars", subject=i.name)
            if not why_not:
                _move(i)
                changed = True
        return changed


def _against(loop: Instruction) -> str:
    root = loop.condition.root
    if root.opcode == "get-tuple-element":
        return "the condition is an element of the state"
    if trip_count(loop) is not None:
        return "how often it runs is known"
    for i in loop.condition.instructions:
        if i.opcode in ("parameter", "get-tuple-element"):
            continue
        if not i.shape.is_scalar or not (i.op.is_elementwise or i.opcode == "constant") or not is_movable(i):
            return f"'{i.name}' ({i.opcode}) is more than a number computed from numbers"
    return ""


def _move(loop: Instruction) -> None:
    own_computations(loop)
    condition, body, caller = loop.condition, loop.body, loop.parent
    assert caller is not None
    count = len(loop.shape.tuple_shapes or ())
    test = condition.root
    add_elements(loop, [_copy(test, caller, [part_of(loop.operands[0], (n,)) for n in range(count)])])
    body.root.set_operand(count, _copy(test, body, body.root.operands[:count]))
    condition.root = part_of(condition.parameters[0], (count,))
    condition.remove_dead_from(test)


def _copy(root: Instruction, home: Computation, state: Sequence[Instruction]) -> Instruction:
    """A copy, in `home`, of the computation of `root` from the elements of a loop's state."""
    copies: dict[Instruction, Instruction] = {}
    assert root.parent is not None
    for i in root.parent.post_order():
        if i.opcode == "get-tuple-element":
            copies[i] = state[i.attrs["index"]]
        elif i.opcode != "parameter":
            copies[i] = home.attach(i.clone([copies[o] for o in i.operands]))
    return copies[root]
