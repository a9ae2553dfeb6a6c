"""batch-dot-simplification: batches of one are no batches."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, is_static, reshape
from heron.records import dataclass


@register
@dataclass(frozen=True)
class BatchDotSimplification(Pass):
    """Drops batch dimensions of size 1 from dots.

    A rule of the algebraic simplifier, ``dot_without_ones``, does this for all dimensions in the pipelines.

    ROOT r = f32[1,3,5] dot(f32[1,3,4] x, f32[1,4,5] y),
      lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}
    ->
    a = f32[3,4] reshape(x)
    b = f32[4,5] reshape(y)
    p = f32[3,5] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT r = f32[1,3,5] reshape(p)
    """

    name = "batch-dot-simplification"

    def run(self, module: Module, ctx: PassContext) -> bool:
        dots = [i for i in module.instructions() if i.opcode == "dot" and _ones(i) and is_static(i)]
        for i in dots:
            _drop(i, _ones(i))
        return bool(dots)


def _ones(i: Instruction) -> list[int]:
    """The batch dimensions of size 1, as positions in their list."""
    dims = i.operands[0].shape.dims
    return [n for n, d in enumerate(i.attrs.get("lhs_batch_dims", ())) if dims[d] == 1]


def _drop(i: Instruction, ones: list[int]) -> None:
    c = i.parent
    assert c is not None
    attrs = dict(i.attrs)
    operands: list[Instruction] = []
    for side, x in zip(("lhs", "rhs"), i.operands, strict=True):
        gone = {i.attrs[f"{side}_batch_dims"][n] for n in ones}
        left = [d for d in range(x.shape.rank) if d not in gone]
        operands.append(reshape(x, [x.shape.dims[d] for d in left]))
        for kind in ("batch", "contracting"):
            key = f"{side}_{kind}_dims"
            attrs[key] = tuple(left.index(d) for d in i.attrs.get(key, ()) if d not in gone)
    dims = [size for n, size in enumerate(i.shape.dims) if n not in ones]
    small = c.add("dot", operands, array(i.shape.element_type, dims), like=i, **attrs)
    small.extras = dict(i.extras)
    c.replace(i, reshape(small, i.shape.dims))
