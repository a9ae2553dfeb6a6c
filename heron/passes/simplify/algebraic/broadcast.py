"""Broadcasts, and elementwise ops on broadcast values."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.passes.rewriting.rules import ELEMENTWISE, Builder, rule


@rule("broadcast")
def broadcast_nothing(i: Instruction, b: Builder) -> Instruction | None:
    """broadcast(x) that adds no dimension and moves none == x

    ROOT r = f32[2,3] broadcast(f32[2,3] x), dimensions={0,1}
    ->
    ROOT x
    """
    x = i.operands[0]
    dimensions = i.attrs["dimensions"]
    return x if len(dimensions) == i.shape.rank and dimensions == tuple(range(len(dimensions))) else None


@rule("broadcast")
def broadcast_that_only_transposes(i: Instruction, b: Builder) -> Instruction | None:
    """broadcast(x) whose dimensions are out of order == broadcast(transpose(x))

    ROOT r = f32[3,5,2] broadcast(f32[2,3] x), dimensions={2,0}
    ->
    t = f32[3,2] transpose(x), dimensions={1,0}
    ROOT r = f32[3,5,2] broadcast(t), dimensions={0,2}
    """
    dimensions = i.attrs["dimensions"]
    order = sorted(range(len(dimensions)), key=dimensions.__getitem__)
    if order == list(range(len(order))):
        return None
    return b.broadcast(b.transpose(i.operands[0], order), i.shape.dims, sorted(dimensions))


@rule("broadcast", operand="broadcast")
def broadcast_of_broadcast(i: Instruction, b: Builder) -> Instruction | None:
    """broadcast(broadcast(x)) == broadcast(x)

    a = f32[2,3] broadcast(f32[3] x), dimensions={1}
    ROOT r = f32[4,2,3] broadcast(a), dimensions={1,2}
    ->
    ROOT r = f32[4,2,3] broadcast(x), dimensions={2}
    """
    match i.operands:
        case [Instruction(opcode="broadcast", operands=[x], attrs={"dimensions": inner})]:
            outer = i.attrs["dimensions"]
            return b.broadcast(x, i.shape.dims, [outer[d] for d in inner])
    return None


@rule("broadcast")
def broadcast_of_size_one(i: Instruction, b: Builder) -> Instruction | None:
    """broadcast(x) == broadcast(reshape(x)) without x's dimensions of size 1

    ROOT r = f32[1,4,8] broadcast(f32[1,4] x), dimensions={0,1}
    ->
    a = f32[4] reshape(x)
    ROOT r = f32[1,4,8] broadcast(a), dimensions={1}
    """
    x = i.operands[0]
    if 1 not in x.shape.dims or x.shape.num_elements == i.shape.num_elements:
        return None
    kept = [d for d, size in enumerate(x.shape.dims) if size != 1]
    dimensions = i.attrs["dimensions"]
    return b.broadcast(b.reshape(x, [x.shape.dims[d] for d in kept]), i.shape.dims, [dimensions[d] for d in kept])


@rule("broadcast")
def broadcast_that_only_reshapes(i: Instruction, b: Builder) -> Instruction | None:
    """broadcast(x) == reshape(x) where only dimensions of size 1 are added

    ROOT r = f32[4,1] broadcast(f32[4] x), dimensions={0}
    ->
    ROOT r = f32[4,1] reshape(x)
    """
    x, dimensions = i.operands[0], i.attrs["dimensions"]
    if x.shape.num_elements != i.shape.num_elements or x.shape.rank == i.shape.rank or x.opcode == "constant":
        return None
    if x.shape.num_elements == 0 or list(dimensions) != sorted(dimensions):
        return None
    return b.reshape(x, i.shape.dims)


@rule(ELEMENTWISE, operand="broadcast")
def elementwise_of_broadcasts(i: Instruction, b: Builder) -> Instruction | None:
    """f(broadcast(x), broadcast(y)) == broadcast(f(x, y)) where both are repeated alike, or one of them is a scalar

    p = f32[2,3] broadcast(f32[3] x), dimensions={1}
    q = f32[2,3] broadcast(f32[] y), dimensions={}
    ROOT r = f32[2,3] add(p, q)
    ->
    s = f32[3] broadcast(y), dimensions={}
    a = f32[3] add(x, s)
    ROOT r = f32[2,3] broadcast(a), dimensions={1}
    """
    operands = i.operands
    if i.shape.rank == 0 or i.opcode == "copy" or i.opcode == "reduce-precision":
        return None
    # others are the scalar predicate of a select or a bound of a clamp
    broadcasts = [o for o in operands if o.opcode == "broadcast"]
    if not broadcasts or any(o.shape.rank for o in operands if o.opcode != "broadcast"):
        return None
    arrays = [o for o in broadcasts if o.operands[0].shape.rank]
    if len({(o.attrs["dimensions"], o.operands[0].shape.dims) for o in arrays}) > 1:
        return None
    widest = arrays[0] if arrays else None
    dims = () if widest is None else widest.operands[0].shape.dims
    if widest is not None and widest.operands[0].shape.num_elements >= i.shape.num_elements:
        return None
    narrow = [
        o
        if o.opcode != "broadcast"
        else o.operands[0]
        if widest is None or o.operands[0].shape.rank
        else b.broadcast(o.operands[0], dims, ())
        for o in operands
    ]
    inner = b.like(i, narrow, i.shape.with_dims(dims))
    return b.broadcast(inner, i.shape.dims, () if widest is None else widest.attrs["dimensions"])


@rule("sort", operand="broadcast")
def sort_of_broadcast(i: Instruction, b: Builder) -> Instruction | None:
    """sort(broadcast(v)) == broadcast(v) for a scalar v

    less {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT c = pred[] compare(a, b), direction=LT
    }

    x = f32[8] broadcast(f32[] v), dimensions={}
    ROOT r = f32[8] sort(x), dimensions={0}, to_apply=less
    ->
    ROOT r = f32[8] broadcast(v), dimensions={}
    """
    x = i.operands[0]
    return x if len(i.operands) == 1 and x.opcode == "broadcast" and x.operands[0].shape.rank == 0 else None
