"""while-loop-simplifier: loops that run never or once, and state nobody needs."""

from __future__ import annotations

from heron.analysis.values.trip_count import trip_count
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.control_flow.model.loop_counters import decide_comparisons, merge_counters
from heron.passes.control_flow.model.loop_equal import join_equal_elements
from heron.passes.control_flow.model.loop_state import (
    State,
    flatten_elements,
    invariant_elements,
    is_plain,
    keep_elements,
    reads,
)
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import inline
from heron.passes.rewriting.tuples import part_of
from heron.records import dataclass


@register
@dataclass(frozen=True)
class WhileLoopSimplifier(Pass):
    """Removes loops that run 0 times, inlines those that run once, and drops state that has no effect.

    An element of the state goes when neither the condition, nor the result, nor an element that stays depends on it, or
    when another one always has the same value, or is a counter it can be computed from. An element that no round
    changes is read from the initial value after the loop. Tuples within the state become elements of their own.
    Comparisons of counters with constants that come out alike in every round become constants.

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
    looks_for = frozenset({"while"})

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        while _sweep(module):
            changed = True
        if changed:
            module.remove_unused_computations()
        return changed


def _sweep(module: Module) -> bool:
    """Simplify every loop once."""
    changed = False
    for i in [i for i in module.instructions() if i.opcode == "while"]:
        if i.parent is not None and i.parent.module is module:
            changed |= _remove(i) or _simplify(i)
    return changed


def _remove(loop: Instruction) -> bool:
    """A loop that runs 0 times gives what it is given; one that runs once is its body."""
    if any(i.has_side_effect for i in loop.condition.instructions):
        return False
    trips = 0 if _is_never(loop.condition) else trip_count(loop, most=1)
    assert loop.parent is not None
    if trips == 0:
        loop.parent.replace(loop, loop.operands[0])
        if loop.parent is not None:
            loop.parent.remove(loop)
    elif trips == 1:
        inline(loop, loop.body, [loop.operands[0]])
    return trips in (0, 1)


def _is_never(condition: Computation) -> bool:
    root = condition.root
    return root.opcode == "constant" and not root.attrs["literal"].array


def _simplify(loop: Instruction) -> bool:
    if flatten_elements(loop) is not None:
        return True  # the new loop comes next
    after = reads(loop)
    if after is None or not is_plain(loop):
        return False
    return (
        _read_invariants_before(loop, after)
        or _drop_dead_elements(loop, after)
        or join_equal_elements(loop, after)
        or merge_counters(loop, after)
        or decide_comparisons(loop)
    )


def _read_invariants_before(loop: Instruction, after: State) -> bool:
    """Read what no round changes from the initial state."""
    caller, init = loop.parent, loop.operands[0]
    assert caller is not None
    found = [read for n in invariant_elements(loop) for read in after.get(n, ())]
    for read in found:
        caller.replace(read, part_of(init, (read.attrs["index"],)))
    return bool(found)


def _drop_dead_elements(loop: Instruction, after: State) -> bool:
    used = {n for n, instructions in after.items() if any(i.users or i.is_root for i in instructions)}
    live = _live_elements(loop, used)
    if len(live) == len(loop.shape.tuple_shapes or ()):
        return False
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
