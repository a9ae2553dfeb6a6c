"""collective-cse: equal exchanges of one value become one, whatever their channels are called."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from heron.hlo.facts import combiner
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class CollectiveCse(Pass):
    """Merges collectives that exchange the same operands in the same groups by the same rule.

    The pass `cse` keeps collectives of different channels apart. Their channels only tell exchanges apart that run at
    the same time, so one of two equal exchanges is enough. ``distance``: the most instructions between the two, in the
    order of the program, over which the result of the first is kept alive; 0: any number.

    HloModule example, num_partitions=2

    p = f32[8] all-gather(f32[4] x), channel_id=1, dimensions={0}
    q = f32[8] all-gather(x), channel_id=2, dimensions={0}
    ROOT r = f32[8] add(p, q)
    ->
    HloModule example, num_partitions=2

    p = f32[8] all-gather(x), channel_id=1, dimensions={0}
    ROOT r = f32[8] add(p, p)
    """

    name = "collective-cse"
    aliases = ("all-gather-cse", "collective-permute-cse", "schedule-aware-collective-cse")
    distance: int = 0

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            seen: dict[Hashable, list[tuple[Instruction, int]]] = {}
            for n, i in enumerate(c.post_order() if self.distance else c.instructions):
                if Trait.COLLECTIVE not in i.op.traits or not _is_whole(i):
                    continue
                entries = seen.setdefault((i.opcode, tuple(i.operands), i.shape.bare), [])
                k = next((k for k, (other, _) in enumerate(entries) if _way(other) == _way(i)), None)
                if k is None:
                    entries.append((i, n))
                    continue
                first, at = entries[k]
                if self.distance and n - at > self.distance:
                    entries[k] = i, n
                    continue
                ctx.decide(True, f"'{first.name}' exchanges the same", subject=i.name)
                c.replace(i, first)
                changed = True
        return changed


def _is_whole(i: Instruction) -> bool:
    """Whether the collective is one instruction that gives arrays and nothing else."""
    is_part = i.op.done or i.has_side_effect or Trait.FREE in i.op.traits or Trait.ASYNC in i.op.traits
    return not (is_part or i.control_predecessors or i.control_successors)


def _way(i: Instruction) -> tuple[bool, object, dict[str, Any]]:
    """The way in which operands are exchanged: whether across partitions, the combination, all other attributes."""
    attrs = dict(i.attrs)
    across = attrs.pop("channel_id", None) is not None
    reducer = attrs.pop("to_apply", None)
    return across, None if reducer is None else (combiner(reducer) or reducer), attrs
