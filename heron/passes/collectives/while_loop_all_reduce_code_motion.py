"""while-loop-all-reduce-code-motion: sums that a loop only adds up are exchanged once, after the loop."""

from __future__ import annotations

from heron.analysis.cost.program import trips_of
from heron.hlo.exact import holds_all
from heron.hlo.facts import combiner, identity
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.collectives.model.filled import exchange_behind
from heron.passes.collectives.model.reductions import is_alone
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import applied, splat
from heron.passes.rewriting.tuples import take_apart
from heron.records import dataclass


@register
@dataclass(frozen=True)
class WhileLoopAllReduceCodeMotion(Pass):
    """Moves an all-reduce out of a loop that adds it to an element of the state and does nothing else with both.

    The loop then adds up the operands, from zero, and one all-reduce behind it exchanges their sum. Gradients that are
    accumulated over small batches are such sums. Floats are added in another order.

    A sum of bf16 that is added to f32 becomes one of f32 behind the loop, where the rounds are so many that this sends
    no more. It is rounded less often.

    An all-reduce whose result becomes a part of an array that the rounds fill is moved out too: the loop fills the
    array with the operands, and the whole of it is exchanged at once.

    HloModule example, replica_count=2

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    body {
      s = (s32[], f32[4], f32[4]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      one = s32[] constant(1)
      m = s32[] add(n, one)
      t = f32[4] get-tuple-element(s), index=1
      x = f32[4] get-tuple-element(s), index=2
      r = f32[4] all-reduce(x), to_apply=sum
      u = f32[4] add(t, r)
      ROOT o = (s32[], f32[4], f32[4]) tuple(m, u, x)
    }

    condition {
      s = (s32[], f32[4], f32[4]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      most = s32[] constant(3)
      ROOT c = pred[] compare(n, most), direction=LT
    }

    i = (s32[], f32[4], f32[4]) tuple(s32[] n, f32[4] t, f32[4] x)
    w = (s32[], f32[4], f32[4]) while(i), condition=condition, body=body
    ROOT r = f32[4] get-tuple-element(w), index=1
    ->
    ...
    """

    name = "while-loop-all-reduce-code-motion"

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            for i in c.instructions:
                if i.opcode != "while":
                    continue
                accumulated = _accumulated(i)
                if accumulated:
                    take_apart(i)
                for index in accumulated:
                    _move_out(i, index)
                    ctx.decide(True, f"element {index} of the state is only added to", subject=i.name)
                    changed = True
                for index in exchange_behind(i):
                    ctx.decide(True, f"element {index} of the state is only filled", subject=i.name)
                    changed = True
        return changed


def _accumulated(loop: Instruction) -> list[int]:
    """Elements of the state that the loop changes by adding an all-reduce to them, and reads for nothing else."""
    body, condition = loop.body, loop.condition
    initial, root = loop.operands[0], body.root
    plain = initial.opcode == "tuple" and root.opcode == "tuple" and len(loop.called) == 2
    is_own = len(initial.users) == 1 and not (loop.control_predecessors or loop.control_successors)
    if not plain or not is_own:
        return []
    (state,), (asked,) = body.parameters, condition.parameters
    users = [*state.users, *asked.users]
    if any(user.opcode != "get-tuple-element" for user in users):
        return []
    read_by_condition = {user.index for user in asked.users}
    found: list[int] = []
    for index, new in enumerate(root.operands):
        reads = [user for user in state.users if user.index == index]
        is_sum = index not in read_by_condition and len(reads) == 1 and _adds_all_reduce(new, reads[0], loop)
        if is_sum and sum(o is new for o in root.operands) == 1:
            found.append(index)
    return found


def _adds_all_reduce(new: Instruction, old: Instruction, loop: Instruction) -> bool:
    """Whether `new` is ``old + all-reduce(x)``, both used here alone."""
    if new.opcode != "add" or len(new.users) != 1 or list(old.users) != [new] or new.operands.count(old) != 1:
        return False
    if new.control_predecessors or new.control_successors:
        return False
    added = new.operands[1 - new.operands.index(old)]
    if list(added.users) != [new]:
        return False
    reduced = added
    if _is_widened(added, loop):
        reduced = added.operands[0]
        if list(reduced.users) != [added]:
            return False
    return reduced.opcode == "all-reduce" and is_alone(reduced) and combiner(reduced.to_apply) == "add"


def _is_widened(i: Instruction, loop: Instruction) -> bool:
    """Whether `i` is a float in a wider type, and the loop has as many rounds as a wide element has narrow ones."""
    if i.opcode != "convert" or i.control_predecessors or i.control_successors:
        return False
    narrow, wide = i.operands[0].shape.element_type, i.shape.element_type
    if not (narrow.is_float and wide.is_float):
        return False
    return holds_all(narrow, wide) and (trips_of(loop) or 0) * narrow.bits >= wide.bits


def _move_out(loop: Instruction, index: int) -> None:
    c, initial = loop.parent, loop.operands[0]
    assert c is not None
    new = loop.body.root.operands[index]
    added = next(o for o in new.operands if o.opcode in ("all-reduce", "convert"))
    reduced = added if added.opcode == "all-reduce" else added.operands[0]
    start = initial.operands[index]
    if added is reduced:
        new.set_operand(new.operands.index(reduced), reduced.operands[0])
    else:
        added.set_operand(0, reduced.operands[0])
    initial.set_operand(index, splat(c, start.shape, identity("add", start.shape.element_type)))
    assert c.module is not None
    attrs = {**reduced.attrs, "to_apply": applied(c.module, "add", start.shape.element_type)}
    reads = [user for user in loop.users if user.index == index]
    for read in reads:
        parts = c.add("get-tuple-element", [loop], read.shape, like=read, index=index)
        whole = c.add("all-reduce", [parts], read.shape, like=reduced, **attrs)
        c.replace(read, c.add("add", [start, whole], read.shape, like=new))
    loop.body.remove(reduced)
