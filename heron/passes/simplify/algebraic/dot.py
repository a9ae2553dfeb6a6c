"""Dots with nothing to sum, dots by nothing."""

from __future__ import annotations

from heron.hlo.instruction import Instruction
from heron.passes.simplify.algebraic.rules import Builder, rule


@rule("dot")
def dot_of_empty(i: Instruction, b: Builder) -> Instruction | None:
    """dot(x, y) over no elements == 0

    ROOT r = f32[2,3] dot(f32[2,0] x, f32[0,3] y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ->
    zero = f32[] constant(0)
    ROOT r = f32[2,3] broadcast(zero), dimensions={}
    """
    if all(x.shape.num_elements for x in i.operands[:2]):
        return None
    return b.splat(i.shape, 0)


@rule("dot")
def dot_of_one_product(i: Instruction, b: Builder) -> Instruction | None:
    """dot(x, y) over dimensions of size 1 == the products of x's and y's elements

    ROOT r = f32[2,3] dot(f32[2,1] x, f32[1,3] y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ->
    a = f32[2] reshape(x)
    b = f32[3] reshape(y)
    c = f32[2,3] broadcast(a), dimensions={0}
    d = f32[2,3] broadcast(b), dimensions={1}
    ROOT r = f32[2,3] multiply(c, d)
    """
    if len(i.operands) != 2 or i.attrs.get("algorithm"):
        return None
    x, y = i.operands
    types = {x.shape.element_type, y.shape.element_type, i.shape.element_type}
    if len(types) > 1 or i.shape.num_elements == 0:
        return None
    if any(x.shape.dims[d] != 1 for d in i.lhs_contracting_dims):
        return None
    batches = len(i.lhs_batch_dims)
    lhs = _spread(x, i.lhs_batch_dims, i.lhs_contracting_dims, batches, i, b)
    left = x.shape.rank - batches - len(i.lhs_contracting_dims)
    rhs = _spread(y, i.rhs_batch_dims, i.rhs_contracting_dims, batches + left, i, b)
    return b.add("multiply", [lhs, rhs], i.shape)


def _spread(
    x: Instruction,
    batch: tuple[int, ...],
    contracting: tuple[int, ...],
    free_at: int,
    i: Instruction,
    b: Builder,
) -> Instruction:
    """`x` in the shape of the dot: batch dimensions first, its free dimensions from `free_at` on."""
    kept = [d for d in range(x.shape.rank) if d not in contracting]
    free = [d for d in kept if d not in batch]
    flat = b.reshape(x, [x.shape.dims[d] for d in kept])
    ordered = b.transpose(flat, [kept.index(d) for d in (*batch, *free)])
    places = [*range(len(batch)), *range(free_at, free_at + len(free))]
    return b.broadcast(ordered, i.shape.dims, places)
