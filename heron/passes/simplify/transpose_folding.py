"""transpose-folding: a dot reads its operands or writes its result the other way round, and the transpose is gone."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.records import dataclass


@register
@dataclass(frozen=True)
class TransposeFolding(Pass):
    """Folds transposes of a dot's operands and of its result into the dot, which libraries do for free.

    A transposed result is the product of the operands in the other order. Operands fold where batch dimensions keep
    their places and at most one free dimension is left, so that the result does not change order.

    t = f32[4,5] transpose(f32[5,4] y), dimensions={1,0}
    ROOT r = f32[3,5] dot(f32[3,4] x, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ->
    ROOT r = f32[3,5] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}
    """

    name = "transpose-folding"
    looks_for = frozenset({"dot"})
    constraints = (
        Constraint("dot-decomposer", "transpose-folding", "it folds only into dots with one free dimension a side"),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = False
        for c in module.computations_to_rewrite():
            for i in c.instructions:
                if i.opcode == "dot":
                    changed |= _fold(i, 0, "lhs")
                    changed |= _fold(i, 1, "rhs")
                    changed |= _swap(i)
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
    i.mark_changed()
    assert i.parent is not None
    i.parent.remove_dead_from(t)
    return True


def _swap(i: Instruction) -> bool:
    """transpose(dot(x, y)) == dot(y, x), where the transpose exchanges x's free dimension with y's"""
    rank, batch = i.shape.rank, len(i.attrs.get("lhs_batch_dims", ()))
    if rank - batch != 2 or len(i.operands) != 2 or i.is_root or not i.users:
        return False
    exchanged = (*range(batch), rank - 1, rank - 2)
    if any(t.opcode != "transpose" or t.attrs["dimensions"] != exchanged for t in i.users):
        return False
    if any(o.shape.rank - batch - len(i.attrs.get(f"{s}_contracting_dims", ())) != 1 for o, s in _sides(i)):
        return False
    c = i.parent
    assert c is not None
    sides = {"lhs": "rhs", "rhs": "lhs"}
    attrs = {(sides[k[:3]] + k[3:] if k[:3] in sides else k): v for k, v in i.attrs.items()}
    if attrs.get("operand_precision"):
        attrs["operand_precision"] = attrs["operand_precision"][::-1]
    x, y = i.operands
    users = list(i.users)
    swapped = c.add("dot", [y, x], users[0].shape, like=i, **attrs)
    for t in users:
        c.replace(t, swapped)
    return True


def _sides(i: Instruction) -> list[tuple[Instruction, str]]:
    return [(i.operands[0], "lhs"), (i.operands[1], "rhs")]
