"""collective-permute-motion: permutes at the end of a loop's round move to the beginning of the next one."""

from __future__ import annotations

from heron.analysis.values.trip_count import Counter
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import scalar as scalar_shape
from heron.hlo.ir.types import PRED
from heron.passes.collectives.model.reductions import is_alone
from heron.passes.collectives.model.rounds import copies, counted, is_formatting, known_early, state_reads
from heron.passes.control_flow.model.loop_state import reads
from heron.passes.control_flow.model.ownership import own_computations
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import scalar
from heron.passes.rewriting.tuples import part_of
from heron.records import dataclass


@register
@dataclass(frozen=True)
class CollectivePermuteMotion(Pass):
    """Moves a collective-permute behind which a round of a counted loop does little to the next round's beginning.

    The permute can then overlap with work of that round that does not need it. The first round takes what the loop
    begins with. Nothing behind the loop may need the permuted value.

    HloModule example, replica_count=2

    body {
      s = (s32[], f32[4]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      x = f32[4] get-tuple-element(s), index=1
      y = f32[4] sine(x)
      p = f32[4] collective-permute(y), source_target_pairs={{0,1},{1,0}}
      one = s32[] constant(1)
      m = s32[] add(n, one)
      ROOT o = (s32[], f32[4]) tuple(m, p)
    }

    condition {
      s = (s32[], f32[4]) parameter(0)
      n = s32[] get-tuple-element(s), index=0
      most = s32[] constant(3)
      ROOT c = pred[] compare(n, most), direction=LT
    }

    zero = s32[] constant(0)
    i = (s32[], f32[4]) tuple(zero, f32[4] x)
    l = (s32[], f32[4]) while(i), condition=condition, body=body
    ROOT r = s32[] get-tuple-element(l), index=0
    ->
    ...
    """

    name = "collective-permute-motion"

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            for i in c.instructions:
                counter = counted(i) if i.opcode == "while" else None
                if counter is None or not _movable(i, counter):
                    continue
                own_computations(i)
                found = _movable(i, counter)
                for index, permute in found.items():
                    _move(i, counter, index, permute)
                ctx.decide(True, f"{len(found)} permutes at the beginning of a round", subject=i.name)
                changed = True
        return changed


def _movable(loop: Instruction, counter: Counter) -> dict[int, Instruction]:
    """Elements of the state that a permute of this round, little work behind it, ends in."""
    after, read, root = reads(loop), reads(loop.body.parameters[0]) or {}, loop.body.root
    asked = reads(loop.condition.parameters[0]) or {}
    if after is None:
        return {}
    same = {i for i, counts in known_early(loop, counter).items() if not counts}
    found: dict[int, Instruction] = {}
    for index, value in enumerate(root.operands):
        if index in after or index in asked or root.operands.count(value) > 1:
            continue
        permute = _permute_behind(value, same)
        if permute is not None and index in read and permute.operands[0] not in read[index]:
            found[index] = permute
    return found


def _permute_behind(value: Instruction, same: set[Instruction]) -> Instruction | None:
    """The permute that `value` is made of, together with values that no round changes alone."""
    while len(value.users) == 1:
        if value.opcode == "collective-permute":
            return value if is_alone(value) else None
        others = [o for o in value.operands if o not in same]
        if not is_formatting(value) or len(others) != 1:
            return None
        (value,) = others
    return None


def _move(loop: Instruction, counter: Counter, index: int, permute: Instruction) -> None:
    body, (x,) = loop.body, permute.operands
    value = body.root.operands[index]
    old = [read for read in state_reads(body) if read.index == index]
    users = {read: list(read.users) for read in old}
    (moved,) = copies(body, [value], {**{read: read for read in state_reads(body)}, x: old[0]})
    number = part_of(body.parameters[0], (counter.index,))
    start = scalar(body, number.shape.element_type, counter.start)
    is_first = body.add("compare", [number, start], scalar_shape(PRED), direction="EQ")
    everywhere = body.add("broadcast", [is_first], moved.shape.with_type(PRED), dimensions=())
    begun = body.add("select", [everywhere, old[0], moved], moved.shape, like=permute)
    for read in old:
        read.replace_uses_with(begun, only=users[read])
    # an operand that was the state itself has changed with the others
    body.root.set_operand(index, permute.operands[0])
    body.remove_dead_from(value)
