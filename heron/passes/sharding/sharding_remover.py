"""Pass sharding-remover."""

from __future__ import annotations

from heron.hlo.calls.markers import is_identity
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.layout.marker_remover import take_out
from heron.passes.sharding.model.annotations import BARRIER, CONSTRAINT, ENTER, LEAVE, target
from heron.records import dataclass

_PREFIX = "xla.sdy."
#: frontend attributes of Shardy's that later passes read
_KEPT = frozenset({f"{_PREFIX}sharding_rule"})
_ANNOTATIONS = frozenset({CONSTRAINT, ENTER, LEAVE, BARRIER, "ShardBarrierFrom", "ShardBarrierTo"})


@register
@dataclass(frozen=True)
class ShardingRemover(Pass):
    """Removes what a program for one device says of shardings: there, every value is whole.

    Constraints, barriers and borders of manual computations become their operand, calls that put values into a group
    go, and so do the shardings of instructions. Borders between different shapes stay; they are for several devices.

    a = f32[8] custom-call(f32[8] x), custom_call_target="Sharding", sharding={replicated}
    ROOT r = f32[8] negate(a), sharding={replicated}
    ->
    ROOT r = f32[8] negate(f32[8] x)
    """

    name = "sharding-remover"

    def run(self, module: Module, ctx: PassContext) -> bool:
        if module.num_partitions > 1:
            return False
        changed = False
        for c in module.computations:
            for i in c.instructions:
                if i.parent is None:
                    continue
                changed |= _clear(i)
                if _is_annotation(i) and is_identity(i):
                    take_out(i)
                    changed = True
        return changed | _clear_header(module)


def _is_annotation(i: Instruction) -> bool:
    return target(i) in _ANNOTATIONS or target(i).startswith(_PREFIX)


def _clear(i: Instruction) -> bool:
    """Drop the sharding and Shardy's attributes of an instruction."""
    changed = i.extras.pop("sharding", None) is not None
    attributes = i.extras.get("frontend_attributes")
    if not attributes:
        return changed
    kept = {k: v for k, v in attributes.items() if not k.startswith(_PREFIX) or k in _KEPT}
    if len(kept) == len(attributes):
        return changed
    if kept:
        i.extras["frontend_attributes"] = kept
    else:
        del i.extras["frontend_attributes"]
    return True


def _clear_header(module: Module) -> bool:
    attributes = module.header.get("frontend_attributes")
    if not attributes or not any(k.startswith(_PREFIX) for k in attributes):
        return False
    kept = {k: v for k, v in attributes.items() if not k.startswith(_PREFIX)}
    if kept:
        module.header["frontend_attributes"] = kept
    else:
        del module.header["frontend_attributes"]
    return True
