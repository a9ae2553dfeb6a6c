"""tuple-simplifier: tuples that are taken apart at once."""

from __future__ import annotations

from heron.hlo.facts import having
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.op import Trait
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import same_type
from heron.records import dataclass


@register
@dataclass(frozen=True)
class TupleSimplifier(Pass):
    """Reads elements straight from where they were put, and drops tuples that only repack another.

    t = (f32[4], f32[2]) tuple(f32[4] x, f32[2] y)
    ROOT r = f32[2] get-tuple-element(t), index=1
    ->
    ROOT y
    """

    name = "tuple-simplifier"
    looks_for = having(Trait.TUPLE)

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.computations_to_rewrite():
            for i in c.instructions:
                if i.parent is None:
                    continue
                same = _element(i) if i.opcode == "get-tuple-element" else _repacked(i) if i.opcode == "tuple" else None
                if same is not None:
                    c.replace(i, same)
                    changed = True
        return changed


def _element(i: Instruction) -> Instruction | None:
    """get-tuple-element(tuple(a, b, ...), n) == the n-th"""
    packed = i.operands[0]
    return packed.operands[i.attrs["index"]] if packed.opcode == "tuple" else None


def _repacked(i: Instruction) -> Instruction | None:
    """tuple(get-tuple-element(t, 0), get-tuple-element(t, 1), ...) == t"""
    if not i.operands or i.operands[0].opcode != "get-tuple-element":
        return None
    whole = i.operands[0].operands[0]
    if len(whole.shape.tuple_shapes or ()) != len(i.operands) or not same_type(whole, i):
        return None
    for n, element in enumerate(i.operands):
        if element.opcode != "get-tuple-element" or element.operands[0] is not whole or element.attrs["index"] != n:
            return None
    return whole
