"""dot-decomposer: every dot is a batch of matrix products."""

from __future__ import annotations

from math import prod

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.passes.framework.base import Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, is_static, reshape, transpose
from heron.records import dataclass


@register
@dataclass(frozen=True)
class DotDecomposer(Pass):
    """Gives dots the form libraries take: batch dimensions first, then one summed and at most one free dimension.

    The summed dimension may stand before or behind the free one on either side; libraries take both, so an operand is
    transposed only when its dimensions are not already in one of the two orders. Several free or summed dimensions
    are merged by a reshape, and the result gets its own dimensions back by another.

    ROOT r = f32[2,3,5] dot(f32[2,3,4] x, f32[4,5] y), lhs_contracting_dims={2}, rhs_contracting_dims={0}
    ->
    a = f32[6,4] reshape(x)
    p = f32[6,5] dot(a, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT r = f32[2,3,5] reshape(p)
    """

    name = "dot-decomposer"
    looks_for = frozenset({"dot"})

    def run(self, module: Module, ctx: PassContext) -> bool:
        dots = [i for i in module.instructions() if i.opcode == "dot" and not is_canonical(i) and is_static(i)]
        for i in dots:
            _decompose(i)
        return bool(dots)


def is_canonical(i: Instruction) -> bool:
    """Whether a dot has the form this pass gives."""
    batches = len(i.lhs_batch_dims)
    first = tuple(range(batches))
    if tuple(i.lhs_batch_dims) != first or tuple(i.rhs_batch_dims) != first or len(i.lhs_contracting_dims) != 1:
        return False
    return all(x.shape.rank - batches - 1 <= 1 for x in i.operands[:2])


def _decompose(i: Instruction) -> None:
    c = i.parent
    assert c is not None
    x, y = i.operands
    batch = list(zip(i.lhs_batch_dims, i.rhs_batch_dims, strict=True))
    summed = sorted(zip(i.lhs_contracting_dims, i.rhs_contracting_dims, strict=True))
    # the order of summed dimensions is free as long as both sides agree; it is x's unless only y could keep its own
    if _can_stay(y, [q for _, q in batch], [q for _, q in sorted(summed, key=lambda pair: pair[1])]):
        summed.sort(key=lambda pair: pair[1])
    lhs, lhs_summed, lhs_free = _as_matrices(x, [p for p, _ in batch], [p for p, _ in summed])
    rhs, rhs_summed, rhs_free = _as_matrices(y, [q for _, q in batch], [q for _, q in summed])
    batch_sizes = [x.shape.dims[p] for p, _ in batch]
    free = [prod(sizes) for sizes in (lhs_free, rhs_free) if sizes]
    batches = tuple(range(len(batch)))
    attrs = {name: value for name, value in i.attrs.items() if not name.endswith("_dims")}
    product = c.add(
        "dot",
        [lhs, rhs],
        array(i.shape.element_type, [*batch_sizes, *free]),
        like=i,
        lhs_batch_dims=batches,
        rhs_batch_dims=batches,
        lhs_contracting_dims=(lhs_summed,),
        rhs_contracting_dims=(rhs_summed,),
        **attrs,
    )
    product.extras = dict(i.extras)
    c.replace(i, reshape(product, i.shape.dims))


def _can_stay(x: Instruction, batch: list[int], summed: list[int]) -> bool:
    """Whether `x`'s dimensions but the batch's stand as (summed, free) or (free, summed)."""
    free = [d for d in range(x.shape.rank) if d not in batch and d not in summed]
    return sorted([*free, *summed]) in ([*free, *summed], [*summed, *free])


def _as_matrices(x: Instruction, batch: list[int], summed: list[int]) -> tuple[Instruction, int, list[int]]:
    """`x` as a batch of matrices, which dimension is summed, and the sizes the free one is made of."""
    free = [d for d in range(x.shape.rank) if d not in batch and d not in summed]
    parts = [free, summed]
    if [*summed, *free] == sorted([*summed, *free]):
        parts.reverse()
    if not free:
        parts = [summed]
    dims = x.shape.dims
    ordered = transpose(x, [*batch, *parts[0], *(parts[1] if free else ())])
    sizes = [prod(dims[d] for d in part) for part in parts]
    matrices = reshape(ordered, [*(dims[d] for d in batch), *sizes])
    return matrices, len(batch) + parts.index(summed), [dims[d] for d in free]
