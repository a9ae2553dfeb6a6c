"""collective-pipeliner: loops exchange data of one round while they compute another."""

from __future__ import annotations

from heron.analysis.values.trip_count import Counter
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.collectives.model import pipelined_late
from heron.passes.collectives.model.reductions import is_alone
from heron.passes.collectives.model.rounds import (
    copies,
    counted,
    drop_last_round,
    elements_of,
    known_early,
    state_reads,
)
from heron.passes.control_flow.model.loop_state import add_elements
from heron.passes.control_flow.model.ownership import own_computations
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.tuples import part_of
from heron.records import dataclass


@register
@dataclass(frozen=True)
class CollectivePipeliner(Pass):
    """Moves exchanges of a counted loop to another round than that which computes with them.

    ``direction="early"``: an all-gather of what depends on the number of the round alone, as of the weights of a layer,
    is done a round earlier, and its result carried over. The first is done before the loop; the last round, which has
    none to begin, stands behind it.

    ``direction="late"``: an all-reduce or a reduce-scatter whose result is only stored into an array of all rounds is
    done a round later. The first round stands before the loop, the last exchange behind it.

    A scheduler that begins exchanges early then has the work of a whole round to put between start and done. The array
    that is carried over takes memory, and a round of the loop is there twice.

    ``by_option``: only where the option pipeline_collectives is set.

    HloModule example, replica_count=2

    body {
      s = (s32[], f32[3,2], f32[4]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      w = f32[3,2] get-tuple-element(s), index=1
      x = f32[4] get-tuple-element(s), index=2
      zero = s32[] constant(0)
      d = f32[1,2] dynamic-slice(w, n, zero), dynamic_slice_sizes={1,2}
      e = f32[2] reshape(d)
      g = f32[4] all-gather(e), dimensions={0}
      y = f32[4] multiply(x, g)
      one = s32[] constant(1)
      m = s32[] add(n, one)
      ROOT o = (s32[], f32[3,2], f32[4]) tuple(m, w, y)
    }

    condition {
      s = (s32[], f32[3,2], f32[4]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      most = s32[] constant(3)
      ROOT c = pred[] compare(n, most), direction=LT
    }

    zero = s32[] constant(0)
    i = (s32[], f32[3,2], f32[4]) tuple(zero, f32[3,2] w, f32[4] x)
    l = (s32[], f32[3,2], f32[4]) while(i), condition=condition, body=body
    ROOT r = f32[4] get-tuple-element(l), index=2
    ->
    ...
    """

    name = "collective-pipeliner"
    constraints = (Constraint("collective-pipeliner", "async-collective-creator", "whole exchanges change rounds"),)
    direction: str = "early"
    by_option: bool = False

    def run(self, module: Module, ctx: PassContext) -> bool:
        if self.by_option and not ctx.options.pipeline_collectives:
            return False
        changed = False
        for c in module.non_fusion_computations():
            for i in c.instructions:
                counter = counted(i) if i.opcode == "while" and i.parent is c else None
                if counter is None:
                    continue
                late = self.direction == "late"
                found = pipelined_late.stores(i, counter) if late else _gathers(i, counter)
                if not found:
                    continue
                pipelined_late.rotate(i, counter) if late else _rotate(i, counter)
                ctx.decide(True, f"{len(found)} exchanges of a round {self.direction}", subject=i.name)
                changed = True
        if changed:
            module.remove_unused_computations()
        return changed


def _gathers(loop: Instruction, counter: Counter) -> list[Instruction]:
    """All-gathers of what a round knows from its number, that this round needs."""
    known = known_early(loop, counter)
    return [
        i
        for i in loop.body.instructions
        if i.opcode == "all-gather" and is_alone(i) and known.get(i.operands[0]) and list(i.users) != [loop.body.root]
    ]


def _rotate(loop: Instruction, counter: Counter) -> None:
    own_computations(loop)
    caller, body, found = loop.parent, loop.body, _gathers(loop, counter)
    assert caller is not None
    initial, count = loop.operands[0], len(loop.operands[0].operands)
    firsts = copies(caller, found, {read: initial.operands[read.index] for read in state_reads(body)})
    add_elements(loop, firsts)
    carried = [part_of(body.parameters[0], (count + n,)) for n in range(len(found))]
    after = body.root.operands[counter.index]
    ahead = {read: after if read.index == counter.index else read for read in state_reads(body)}
    nexts = copies(body, found, ahead)
    for n, (gather, now, later) in enumerate(zip(found, carried, nexts, strict=True)):
        body.replace(gather, now)
        body.root.set_operand(count + n, later)
    loop.extras.pop("backend_config", None)  # a trip count that is no longer true
    drop_last_round(loop, counter)
    reads = list(loop.users)
    elements = elements_of(loop)
    wanted = sorted({read.index for read in reads})
    last = copies(caller, [body.root.operands[n] for n in wanted], {r: elements[r.index] for r in state_reads(body)})
    for read in reads:
        caller.replace(read, last[wanted.index(read.index)])
    for element in elements:
        caller.remove_dead_from(element)
