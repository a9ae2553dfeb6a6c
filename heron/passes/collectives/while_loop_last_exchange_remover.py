"""while-loop-last-exchange-remover: the last round of a loop sends nothing that nobody reads."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.passes.collectives.model.rounds import copies, counted, drop_last_round, elements_of, state_reads
from heron.passes.control_flow.model.ownership import own_computations
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass

#: rounds of which one sends less, at most: of more rounds it is too little to have the body twice
MOST_ROUNDS = 64
#: instructions of a body that is there twice, at most
MOST_INSTRUCTIONS = 500


@register
@dataclass(frozen=True)
class WhileLoopLastExchangeRemover(Pass):
    """Puts the last round of a counted loop behind it where that round exchanges what only a further round would read.

    Rings send their arrays on at the end of each round: ring attention its keys and values, a pipeline what a stage
    made. The last of these exchanges is for nobody, and the round behind the loop has none.

    HloModule example, replica_count=2

    body {
      s = (s32[], f32[4], f32[4]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      x = f32[4] get-tuple-element(s), index=1
      t = f32[4] get-tuple-element(s), index=2
      u = f32[4] add(t, x)
      y = f32[4] collective-permute(x), source_target_pairs={{0,1},{1,0}}
      one = s32[] constant(1)
      m = s32[] add(n, one)
      ROOT o = (s32[], f32[4], f32[4]) tuple(m, y, u)
    }

    condition {
      s = (s32[], f32[4], f32[4]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      most = s32[] constant(3)
      ROOT c = pred[] compare(n, most), direction=LT
    }

    zero = s32[] constant(0)
    i = (s32[], f32[4], f32[4]) tuple(zero, f32[4] x, f32[4] t)
    l = (s32[], f32[4], f32[4]) while(i), condition=condition, body=body
    ROOT r = f32[4] get-tuple-element(l), index=2
    ->
    ...
    """

    name = "while-loop-last-exchange-remover"
    constraints = (
        Constraint("collective-pipeliner", "while-loop-last-exchange-remover", "rounds that are pipelined end apart"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            for i in c.instructions:
                found = _unread_exchanges(i) if i.opcode == "while" and i.parent is c else []
                if found:
                    _take_out_last_round(i)
                    ctx.decide(True, f"{len(found)} exchanges of the last round are for nobody", subject=i.name)
                    changed = True
        if changed:
            module.remove_unused_computations()
        return changed


def _unread_exchanges(loop: Instruction) -> list[Instruction]:
    """The exchanges of the last round on which nothing depends that is read behind the loop, but which the round before
    needs. None where a second round could go the same way: a run of the pass takes one out."""
    exchanges = [i for i in loop.body.instructions if Trait.COLLECTIVE in i.op.traits]
    if not exchanges or len(loop.body) > MOST_INSTRUCTIONS or loop.is_root:
        return []
    if any(i.control_predecessors or i.control_successors for i in loop.body.instructions):
        return []
    if any(user.opcode != "get-tuple-element" for user in loop.users):
        return []
    counter = counted(loop)
    if counter is None or counter.trips > MOST_ROUNDS:
        return []
    last = _needed(loop, {read.index for read in loop.users})
    second = _needed(loop, {read.index for read in state_reads(loop.body) if read in last})
    third = _needed(loop, {read.index for read in state_reads(loop.body) if read in second})
    if any(i in third and i not in second for i in exchanges):
        return []
    return [i for i in exchanges if i in second and i not in last]


def _needed(loop: Instruction, elements: set[int]) -> set[Instruction]:
    """The instructions of a round that its new elements of the state depend on."""
    found: set[Instruction] = set()
    work = [loop.body.root.operands[n] for n in elements]
    while work:
        i = work.pop()
        if i not in found:
            found.add(i)
            work += i.operands
    return found


def _take_out_last_round(loop: Instruction) -> None:
    counter = counted(loop)
    assert counter is not None
    own_computations(loop)
    caller, body = loop.parent, loop.body
    assert caller is not None
    loop.extras.pop("backend_config", None)  # a trip count that is no longer true
    drop_last_round(loop, counter)
    reads = list(loop.users)
    elements = elements_of(loop)
    wanted = sorted({read.index for read in reads})
    known = {read: elements[read.index] for read in state_reads(body)}
    last = copies(caller, [body.root.operands[n] for n in wanted], known)
    for read in reads:
        caller.replace(read, last[wanted.index(read.index)])
    for element in elements:
        caller.remove_dead_from(element)
