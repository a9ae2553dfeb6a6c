"""while-loop-simplifier: loops that run never or once, and state nobody needs."""

from __future__ import annotations

from dataclasses import dataclass

from heron.analysis.trip_count import counter_of
from heron.hlo.computation import Computation
from heron.hlo.instruction import Instruction
from heron.hlo.module import Module
from heron.passes.base import Pass
from heron.passes.building import inline
from heron.passes.context import PassContext
from heron.passes.control_flow.loop_state import invariant_elements, is_plain, keep_elements, reads
from heron.passes.registry import register


@register
@dataclass(frozen=True)
class WhileLoopSimplifier(Pass):
    """Removes loops that run 0 times, inlines those that run once, and drops state that has no effect.

    An element of the state goes when neither the condition, nor the result, nor an element that stays depends on it.
    An element that no round changes is read from the initial value after the loop.

    body {
      s = (s32[], f32[4], f32[4]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      one = s32[] constant(1)
      next = s32[] add(n, one)
      v = f32[4] get-tuple-element(s), index=1
      w = f32[4] add(v, v)
      unused = f32[4] get-tuple-element(s), index=2
      same = f32[4] negate(unused)
      ROOT t = (s32[], f32[4], f32[4]) tuple(next, w, same)
    }

    condition {
      s = (s32[], f32[4], f32[4]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      ten = s32[] constant(10)
      ROOT c = pred[] compare(n, ten), direction=LT
    }

    zero = s32[] constant(0)
    init = (s32[], f32[4], f32[4]) tuple(zero, f32[4] x, x)
    loop = (s32[], f32[4], f32[4]) while(init), condition=condition, body=body
    ROOT r = f32[4] get-tuple-element(loop), index=1
    ->
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

    init = (s32[], f32[4]) tuple(zero, x)
    loop = (s32[], f32[4]) while(init), condition=condition, body=body
    ROOT r = f32[4] get-tuple-element(loop), index=1
    """

    name = "while-loop-simplifier"

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.computations:
            for i in c.instructions:
                if i.opcode == "while" and i.parent is c:
                    changed |= _unroll_short(i) or _simplify_state(i)
        if changed:
            module.remove_unused_computations()
        return changed


def _unroll_short(loop: Instruction) -> bool:
    if loop.condition.root.has_side_effect:
        return False
    counter = counter_of(loop)
    known = _constant_condition(loop.condition)
    assert loop.parent is not None
    if known is False or counter is not None and counter.trips == 0:
        loop.parent.replace(loop, loop.operands[0])
        if loop.parent is not None:
            loop.parent.remove(loop)
        return True
    if counter is not None and counter.trips == 1:
        inline(loop, loop.body, [loop.operands[0]])
        return True
    return False


def _constant_condition(c: Computation) -> bool | None:
    return bool(c.root.attrs["literal"].array) if c.root.opcode == "constant" else None


def _simplify_state(loop: Instruction) -> bool:
    after = reads(loop)
    if after is None or not is_plain(loop):
        return False
    changed = False
    init = loop.operands[0]
    caller = loop.parent
    assert caller is not None
    for n in invariant_elements(loop):
        if init.opcode != "tuple":
            break
        for read in after.pop(n, ()):
            caller.replace(read, init.operands[n])
            changed = True
    if loop.parent is None:  # nothing was read but what never changes
        return True
    used = {n for n, instructions in after.items() if any(i.users or i.is_root for i in instructions)}
    live = _live_elements(loop, used)
    if len(live) == len(loop.shape.tuple_shapes or ()):
        return changed
    keep_elements(loop, live)
    return True


def _live_elements(loop: Instruction, used: set[int]) -> set[int]:
    """Elements of the state that the condition, the result or the body's side effects depend on."""
    condition_reads = reads(loop.condition.parameters[0]) or {}
    live = used | {n for n, instructions in condition_reads.items() if any(i.users or i.is_root for i in instructions)}
    body: Computation = loop.body
    seen: set[Instruction] = {body.parameters[0]}
    work = [i for i in body.instructions if i.has_side_effect]
    work += [body.root.operands[n] for n in live]
    while work:
        i = work.pop()
        if i in seen:
            continue
        seen.add(i)
        if i.opcode == "get-tuple-element" and i.operands[0] is body.parameters[0]:
            n = i.attrs["index"]
            if n not in live:
                live.add(n)
                work.append(body.root.operands[n])
        else:
            work.extend(i.operands)
            work.extend(i.control_predecessors)
    return live
