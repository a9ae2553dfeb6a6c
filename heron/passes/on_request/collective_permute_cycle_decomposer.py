"""collective-permute-cycle-decomposer: a ring becomes two permutes that are no ring."""

from __future__ import annotations

from collections.abc import Sequence

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.types import PRED, U32
from heron.passes.collectives.model.grouping import free_channels
from heron.passes.collectives.model.places import looked_up
from heron.passes.collectives.model.reductions import is_alone
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass

Pair = tuple[int, int]


@register
@dataclass(frozen=True)
class CollectivePermuteCycleDecomposer(Pass):
    """Splits a collective-permute whose pairs form rings into the pairs that close a ring, and all others.

    Sends and receives that wait for each other around a ring would wait forever; in the two halves some device always
    sends first. ``least_bytes``: of the smallest array whose permute is split.

    HloModule example, replica_count=3

    ROOT p = f32[4] collective-permute(f32[4] x), source_target_pairs={{0,1},{1,2},{2,0}}
    ->
    ...
    """

    name = "collective-permute-cycle-decomposer"
    constraints = (
        Constraint(
            "collective-permute-cycle-decomposer", "collective-permute-decomposer", "that takes what has no ring"
        ),
    )
    least_bytes: int = 0

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        channels = free_channels(module)
        for c in module.non_fusion_computations():
            for i in c.instructions:
                if i.opcode != "collective-permute" or not is_alone(i) or i.shape.byte_size < self.least_bytes:
                    continue
                closing = closing_pairs(i.source_target_pairs)
                if not closing or len(closing) == len(i.source_target_pairs):
                    continue
                closed = _permute(i, closing)
                if i.channel_id is not None:
                    closed.attrs["channel_id"] = next(channels)
                others = _permute(i, [p for p in i.source_target_pairs if p not in closing])
                c.replace(i, _chosen(i, closing, closed, others, module))
                ctx.decide(True, f"{len(closing)} of {len(i.source_target_pairs)} pairs close a ring", subject=i.name)
                changed = True
        return changed


def closing_pairs(pairs: Sequence[Sequence[int]]) -> list[Pair]:
    """Of each ring of senders and receivers, the pair that leads back to the ring's least member."""
    target = {s: t for s, t in pairs}
    found: list[Pair] = []
    for start in target:
        at, ring = target[start], [start]
        while at in target and at != start and at > start:
            ring.append(at)
            at = target[at]
        if at == start:
            found.append((ring[-1], start))
    return found


def _permute(i: Instruction, pairs: Sequence[Sequence[int]]) -> Instruction:
    assert i.parent is not None
    attrs = {**i.attrs, "source_target_pairs": tuple((s, t) for s, t in pairs)}
    return i.parent.add("collective-permute", i.operands, i.shape, like=i, **attrs)


def _chosen(
    i: Instruction, closing: list[Pair], closed: Instruction, others: Instruction, module: Module
) -> Instruction:
    """The value of the closing pairs on the devices they lead to, and elsewhere that of the others."""
    c, across = i.parent, i.channel_id is not None
    assert c is not None
    count = module.num_partitions if across else module.replica_count
    number = c.add("partition-id" if across else "replica-id", [], None)
    assert number.shape.element_type is U32
    targets = {t for _, t in closing}
    from_ring = looked_up(c, number, [n in targets for n in range(count)], PRED)
    everywhere = c.add("broadcast", [from_ring], i.shape.with_type(PRED), dimensions=())
    return c.add("select", [everywhere, closed, others], i.shape, like=i)
