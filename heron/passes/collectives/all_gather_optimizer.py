"""all-gather-optimizer: an elementwise op of gathered arrays is gathered itself instead."""

from __future__ import annotations

from heron.analysis.devices.groups import groups_key
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.collectives.model.reductions import is_alone
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class AllGatherOptimizer(Pass):
    """Computes an elementwise op of two or more all-gathers before the exchange, where nothing else needs them.

    One array crosses the network instead of several, and each device computes its own part alone.

    HloModule example, replica_count=2

    p = f32[8] all-gather(f32[4] x), dimensions={0}
    q = f32[8] all-gather(f32[4] y), dimensions={0}
    ROOT r = f32[8] add(p, q)
    ->
    HloModule example, replica_count=2

    s = f32[4] add(x, y)
    ROOT r = f32[8] all-gather(s), dimensions={0}
    """

    name = "all-gather-optimizer"

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.non_fusion_computations():
            for i in c.instructions:
                if i.parent is c and _works_on_gathered(i):
                    _gather_result(i)
                    ctx.decide(True, f"one array is gathered instead of {len(i.operands)}", subject=i.name)
                    changed = True
        return changed


def _works_on_gathered(i: Instruction) -> bool:
    operands = i.operands
    if len(operands) < 2 or not i.op.is_elementwise or i.control_predecessors or i.control_successors:
        return False
    first = operands[0]
    if any(o.opcode != "all-gather" or not is_alone(o) or list(o.users) != [i] or o.is_root for o in operands):
        return False
    alike = all(groups_key(o) == groups_key(first) and o.dimensions == first.dimensions for o in operands)
    narrow = i.shape.element_type.bits <= sum(o.shape.element_type.bits for o in dict.fromkeys(operands))
    return alike and narrow and all(o.shape.dims == i.shape.dims for o in operands)


def _gather_result(i: Instruction) -> None:
    c, gathered = i.parent, i.operands[0]
    assert c is not None
    parts = [o.operands[0] for o in i.operands]
    shape = i.shape.with_dims(parts[0].shape.dims)
    part = c.add(i.opcode, parts, shape, like=i, **i.attrs)
    c.replace(i, c.add("all-gather", [part], i.shape, like=gathered, **gathered.attrs))
