"""transpose-folding: a dot reads its operand the other way round instead of waiting for a transpose."""

from __future__ import annotations

from dataclasses import dataclass

from heron.hlo.instruction import Instruction
from heron.hlo.module import Module
from heron.passes.base import Constraint, Pass
from heron.passes.context import PassContext
from heron.passes.registry import register


@register
@dataclass(frozen=True)
class TransposeFolding(Pass):
    """Folds transposes of a dot's operands into the dot, which libraries do for free.

    It folds where batch dimensions keep their places and at most one free dimension is left, so that the result does
    not change order.

    t = f32[4,5] transpose(f32[5,4] y), dimensions={1,0}
    ROOT r = f32[3,5] dot(f32[3,4] x, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ->
    ROOT r = f32[3,5] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}
    """

    name = "transpose-folding"
    constraints = (
        Constraint("dot-decomposer", "transpose-folding", "it folds only into dots with one free dimension a side"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.computations:
            for i in c.instructions:
                if i.opcode == "dot":
                    changed |= _fold(i, 0, "lhs")
                    changed |= _fold(i, 1, "rhs")
        return changed


def _fold(i: Instruction, n: int, side: str) -> bool:
    t = i.operands[n]
    if t.opcode != "transpose":
        return False
    x, permutation = t.operands[0], t.attrs["dimensions"]
    batch, summed = i.attrs.get(f"{side}_batch_dims", ()), i.attrs.get(f"{side}_contracting_dims", ())
    if any(permutation[d] != d for d in batch) or x.shape.rank - len(batch) - len(summed) > 1:
        return False
    i.set_operand(n, x)
    i.attrs[f"{side}_contracting_dims"] = tuple([permutation[d] for d in summed])
    assert i.parent is not None
    i.parent.remove_dead_from(t)
    return True
