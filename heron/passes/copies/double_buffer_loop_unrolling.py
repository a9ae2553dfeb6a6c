"""double-buffer-loop-unrolling: loop state that cannot be updated in place goes to and fro between two buffers."""

from __future__ import annotations

import json

from heron.analysis.cost.program import trips_of
from heron.analysis.values.trip_count import noted_trips
from heron.hlo.calls.backend_config import hints
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.passes.copies.flatten_call_graph import FlattenCallGraph
from heron.passes.copies.model.coalesce import Plan, coalesce
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import copy_body, own_body
from heron.records import dataclass

#: the key in a loop's backend_config that says it was unrolled
_UNROLLED = "double_buffered"


@register
@dataclass(frozen=True)
class DoubleBufferLoopUnrolling(Pass):
    """Lets a round of a loop be two, where the new state would have to be copied over the old one each round.

    The first round writes into a second buffer, the next one back into the first: nothing is copied. Of an odd number
    of rounds the first is done before the loop. Where the number is not known, the condition is looked at between the
    two rounds, and the state copied into its place when it says that the loop is over: once, not in each round. A loop
    whose copies do not get fewer stays as it is; one that was unrolled says so and stays so. ``least_bytes``: what a
    round must copy for this to pay; ``most_instructions``: the size of body above which a loop stays.

    body {
      s = (s32[], f32[4]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      one = s32[] constant(1)
      next = s32[] add(n, one)
      v = f32[4] get-tuple-element(s), index=1
      w = f32[4] reverse(v), dimensions={0}
      ROOT t = (s32[], f32[4]) tuple(next, w)
    }

    condition {
      s = (s32[], f32[4]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      ten = s32[] constant(10)
      ROOT c = pred[] compare(n, ten), direction=LT
    }

    zero = s32[] constant(0)
    init = (s32[], f32[4]) tuple(zero, f32[4] x)
    ROOT loop = (s32[], f32[4]) while(init), condition=condition, body=body
    ->
    body {
      s = (s32[], f32[4]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      one = s32[] constant(1)
      next = s32[] add(n, one)
      one.1 = s32[] constant(1)
      last = s32[] add(next, one.1)
      v = f32[4] get-tuple-element(s), index=1
      w = f32[4] reverse(v), dimensions={0}
      w.1 = f32[4] reverse(w), dimensions={0}
      ROOT t = (s32[], f32[4]) tuple(last, w.1)
    }

    init = (s32[], f32[4]) tuple(zero, x)
    ROOT loop = (s32[], f32[4]) while(init), condition=condition, body=body, backend_config={"double_buffered":true}
    """

    name = "double-buffer-loop-unrolling"
    looks_for = frozenset({"while"})
    constraints = (
        Constraint("double-buffer-loop-unrolling", "copy-insertion", "it is done for the copies that need not be made"),
    )
    least_bytes: int = 1
    most_instructions: int = 500

    def run(self, module: Module, ctx: PassContext) -> bool:
        if not _loops(module):
            return False
        changed = FlattenCallGraph().run(module, ctx)
        before = _copied_in(coalesce(module))
        computations = set(module.computations)
        tried: list[_Doubled] = []
        for loop in _loops(module):
            copied = before.get(loop.body, 0)
            if copied < self.least_bytes:
                continue
            refusal = self._refusal(loop)
            if refusal:
                ctx.decide(False, refusal, subject=loop.name, cost_before=copied)
            else:
                tried.append(_Doubled(loop, ctx))
        if not tried:
            return changed
        FlattenCallGraph().run(module, ctx)
        after = _copied_in(coalesce(module))
        for t in tried:
            now, was = after.get(t.loop.body, 0) / 2, before[t.old_body]
            why = f"{t.how}; bytes copied in a round: {was} before, {now:.0f} after"
            ctx.decide(now < was, why, subject=t.loop.name, cost_before=was, cost_after=now)
            if now < was:
                changed = True
                t.keep()
            else:
                t.undo()
        module.remove_unused_computations()
        return changed or set(module.computations) != computations

    def _refusal(self, loop: Instruction) -> str:
        """Why a loop stays as it is; empty when it need not."""
        if _UNROLLED in hints(loop):
            return "it was unrolled before"
        trips = trips_of(loop)
        if trips is not None and trips < 2:
            return f"runs {trips:.0f} times"
        if loop.control_predecessors or loop.control_successors:
            return "something must happen before or after it"
        inside = [i for c in _below(loop) for i in c.instructions]
        if len(inside) > self.most_instructions:
            return f"a round has {len(inside)} instructions, which is more than {self.most_instructions}"
        for i in inside:
            if i.has_side_effect or Trait.COLLECTIVE in i.op.traits:
                return f"'{i.name}' must happen in its order"
        return ""


def _loops(module: Module) -> list[Instruction]:
    return [i for c in module.non_fusion_computations() for i in c.instructions if i.opcode == "while"]


def _below(i: Instruction) -> list[Computation]:
    """The computations that `i` runs, and those they run, but not the bodies of fusions."""
    found = dict.fromkeys(i.called)
    work = list(found)
    while work:
        for inner in work.pop().instructions:
            if inner.opcode != "fusion":
                work += [c for c in inner.called if c not in found]
                found.update(dict.fromkeys(inner.called))
    return list(found)


def _copied_in(plan: Plan) -> dict[Computation, int]:
    """Bytes that planned copies move, by the computation they would stand in."""
    found: dict[Computation, int] = {}
    for f, _ in plan.copied:
        c = f.at.parent
        assert c is not None
        found[c] = found.get(c, 0) + f.source.size
    return found


class _Doubled:
    """A loop whose body is two rounds now, and how to go back."""

    def __init__(self, loop: Instruction, ctx: PassContext) -> None:
        self.loop, self.old_body, self.old_init = loop, loop.body, loop.operands[0]
        self.old_config = loop.extras.get("backend_config")
        trips = trips_of(loop)
        assert loop.parent is not None
        if trips is not None and trips % 2:
            loop.set_operand(0, _round(loop.parent, self.old_body, self.old_init))
        loop.attrs["body"] = _two_rounds(loop, known=trips is not None)
        loop.mark_changed()
        loop.extras["backend_config"] = _halved(loop)
        self.how = (
            "two rounds in one, with a look at the condition between them"
            if trips is None
            else f"{trips // 2:.0f} times two rounds" + (", after one before the loop" if trips % 2 else "")
        )

    def keep(self) -> None:
        """Drop what only the loop as it was needed."""
        assert self.loop.parent is not None
        self.loop.parent.remove_dead_from(self.old_init)

    def undo(self) -> None:
        """Make the loop what it was."""
        loop, peeled = self.loop, self.loop.operands[0]
        assert loop.parent is not None
        loop.attrs["body"] = self.old_body
        loop.mark_changed()
        if peeled is not self.old_init:
            loop.set_operand(0, self.old_init)
            loop.parent.remove_dead_from(peeled)
        if self.old_config is None:
            del loop.extras["backend_config"]
        else:
            loop.extras["backend_config"] = self.old_config


def _two_rounds(loop: Instruction, known: bool) -> Computation:
    module, body = loop.body.module, loop.body
    assert module is not None
    longer = module.add_computation(Computation(body.name))
    state = longer.add_parameter(0, body.parameters[0].shape, body.parameters[0].name)
    first = _round(longer, body, state)
    if known:
        longer.root = _round(longer, body, first)
    else:
        goes_on = _round(longer, loop.condition, first)
        again = module.add_computation(body.clone())
        for i in again.instructions:
            own_body(i)
        over = module.add_computation(Computation(f"{body.name}.over"))
        over.root = over.add_parameter(0, state.shape)
        longer.root = longer.add(
            "conditional", [goes_on, first, first], state.shape, like=loop, branch_computations=(again, over)
        )
    longer.remove_dead_from(first)
    return longer


def _round(c: Computation, callee: Computation, state: Instruction) -> Instruction:
    """The result of `callee` for `state`, computed in `c`."""
    copies = copy_body(c, callee, [state])
    for i, copy in copies.items():
        if copy.opcode == "get-tuple-element" and copy.operands[0].opcode == "tuple" and i is not callee.root:
            copy.replace_uses_with(copy.operands[0].operands[copy.attrs["index"]])
            c.remove(copy)
    return copies[callee.root]


def _halved(loop: Instruction) -> str:
    """The backend_config of a loop for half as many rounds; what is not known to hold any more goes."""
    facts, trips = hints(loop), noted_trips(loop)
    facts.pop("known_trip_count", None)
    if trips is not None:
        facts["known_trip_count"] = {"n": str(trips // 2)}
    facts.pop("known_init_step", None)
    return json.dumps({**facts, _UNROLLED: True}, sort_keys=True, separators=(",", ":"))
