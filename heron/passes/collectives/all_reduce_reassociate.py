"""all-reduce-reassociate: the sum of two all-reduces is one all-reduce of the sum."""

from __future__ import annotations

from typing import ClassVar

from heron.hlo.facts import combiner, reindexes
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.collectives.model.reductions import is_alone, reduces_alike
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass


@dataclass(frozen=True)
class Reassociation(Pass):
    """The common part of the passes that combine before they exchange instead of afterwards."""

    #: the collective
    opcode: ClassVar[str]

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            for i in c.instructions:
                pair = self._pair(i) if i.parent is c else None
                if pair is not None:
                    _combine_first(i, *pair)
                    ctx.decide(True, "one exchange of the combined operands instead of two", subject=i.name)
                    changed = True
        return changed

    def _pair(self, i: Instruction) -> tuple[Instruction, Instruction, list[Instruction]] | None:
        """The two exchanges that `i` combines, and the movements of elements that are done to the results of both."""
        if len(i.operands) != 2 or not i.op.is_elementwise:
            return None
        a, b = i.operands
        moves: list[Instruction] = []
        while a is not b and a.opcode != self.opcode and _moves_alike(a, b):
            moves.insert(0, a)
            a, b = a.operands[0], b.operands[0]
        if a is b or a.opcode != self.opcode or b.opcode != self.opcode or a.shape.bare is not b.shape.bare:
            return None
        alone = all(is_alone(x) and len(x.users) == 1 and not x.is_root for x in (a, b))
        fits = alone and combiner(a.to_apply) == i.opcode and reduces_alike(a, b)
        return (a, b, moves) if fits else None


def _moves_alike(a: Instruction, b: Instruction) -> bool:
    """Whether two ops pick the same elements of their operands, for one user each."""
    is_move = reindexes(a) or a.opcode == "dynamic-slice"
    if not is_move or a.opcode != b.opcode or a.shape.bare is not b.shape.bare or a.attrs != b.attrs:
        return False
    if a.operands[0].shape.bare is not b.operands[0].shape.bare or a.operands[1:] != b.operands[1:]:
        return False
    return all(len(x.users) == 1 and not (x.control_predecessors or x.control_successors) for x in (a, b))


def _combine_first(i: Instruction, a: Instruction, b: Instruction, moves: list[Instruction]) -> None:
    c = i.parent
    assert c is not None
    new = c.add(i.opcode, [a.operands[0], b.operands[0]], a.operands[0].shape, like=i)
    new = c.add(a.opcode, [new], a.shape, like=a, **a.attrs)
    for move in moves:
        new = c.attach(move.clone([new, *move.operands[1:]]))
    c.replace(i, new)


@register
@dataclass(frozen=True)
class AllReduceReassociate(Reassociation):
    """Combines the operands of two all-reduces that only one op uses, where that op is what they reduce by.

    The number of bytes halves. Chains of sums become one all-reduce. Both results may be reshaped or sliced in the same
    way before they are added. Sums of floats are added in another order, which an all-reduce leaves open anyway.

    HloModule example, replica_count=2

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    p = f32[4] all-reduce(f32[4] x), to_apply=sum
    q = f32[4] all-reduce(f32[4] y), to_apply=sum
    ROOT r = f32[4] add(p, q)
    ->
    HloModule example, replica_count=2

    s = f32[4] add(x, y)
    ROOT p = f32[4] all-reduce(s), to_apply=sum
    """

    name = "all-reduce-reassociate"
    opcode = "all-reduce"
