"""Reshapes, transposes, reverses, copies of the index space."""

from __future__ import annotations

from heron.hlo.instruction import Instruction
from heron.passes.dimensions import common_groups, squeezed
from heron.passes.simplify.algebraic.rules import ELEMENTWISE, Builder, rule


@rule("reshape")
def reshape_to_same(i: Instruction, b: Builder) -> Instruction | None:
    """reshape(x) to x's own dimensions == x

    ROOT r = f32[2,3] reshape(f32[2,3] x)
    ->
    ROOT x
    """
    x = i.operands[0]
    return x if x.shape.dims == i.shape.dims and not any(i.shape.dynamic) else None


@rule("reshape", operand="reshape")
def reshape_of_reshape(i: Instruction, b: Builder) -> Instruction | None:
    """reshape(reshape(x)) == reshape(x)

    a = f32[6] reshape(f32[2,3] x)
    ROOT r = f32[3,2] reshape(a)
    ->
    ROOT r = f32[3,2] reshape(x)
    """
    match i.operands:
        case [Instruction(opcode="reshape", operands=[x])] if not any(i.shape.dynamic):
            return b.reshape(x, i.shape.dims)
    return None


@rule("reshape", operand="broadcast")
def reshape_of_broadcast(i: Instruction, b: Builder) -> Instruction | None:
    """reshape(broadcast(x)) == broadcast(reshape(x)) where no new dimension mixes with x's

    a = f32[2,3,4] broadcast(f32[3] x), dimensions={1}
    ROOT r = f32[2,3,2,2] reshape(a)
    ->
    ROOT r = f32[2,3,2,2] broadcast(x), dimensions={1}
    """
    a = i.operands[0]
    if a.opcode != "broadcast":
        return None
    x = a.operands[0]
    if x.shape.rank == 0:
        return b.broadcast(x, i.shape.dims, ())
    kept = a.attrs["dimensions"]
    if list(kept) != sorted(kept):
        return None
    dims: list[int] = []
    dimensions: list[int] = []
    for old, new in common_groups(a.shape.dims, i.shape.dims):
        from_x = [d for d in old if d in kept]
        if not from_x:
            continue
        if len([d for d in old if a.shape.dims[d] > 1 or d in kept]) != len(from_x):
            return None
        dimensions += new
        dims += [i.shape.dims[d] for d in new]
    return b.broadcast(b.reshape(x, dims), i.shape.dims, dimensions)


@rule("reshape", operand="iota")
def reshape_of_iota(i: Instruction, b: Builder) -> Instruction | None:
    """reshape(iota()) == iota() where only dimensions of size 1 come or go

    it = s32[8] iota(), iota_dimension=0
    ROOT r = s32[1,8] reshape(it)
    ->
    ROOT r = s32[1,8] iota(), iota_dimension=1
    """
    it = i.operands[0]
    if it.opcode != "iota":
        return None
    d = it.attrs["iota_dimension"]
    if it.shape.dims[d] == 1 or squeezed(it.shape.dims) != squeezed(i.shape.dims):
        return None
    nth = sum(size != 1 for size in it.shape.dims[:d])
    place = [n for n, size in enumerate(i.shape.dims) if size != 1][nth]
    return b.add("iota", [], i.shape, iota_dimension=place)


@rule(ELEMENTWISE, operand="reshape")
def elementwise_of_squeezed(i: Instruction, b: Builder) -> Instruction | None:
    """f(reshape(x), reshape(y)) == reshape(f(x, y)) where the reshapes only add or drop dimensions of size 1

    p = f32[2,3,1] reshape(f32[2,3] x)
    q = f32[2,3,1] broadcast(f32[] y), dimensions={}
    ROOT r = f32[2,3,1] add(p, q)
    ->
    q = f32[2,3] broadcast(y), dimensions={}
    a = f32[2,3] add(x, q)
    ROOT r = f32[2,3,1] reshape(a)
    """
    inside: tuple[int, ...] | None = None
    for o in i.operands:
        if o.opcode == "reshape":
            dims = o.operands[0].shape.dims
            if inside not in (None, dims) or squeezed(dims) != squeezed(o.shape.dims):
                return None
            inside = dims
        elif o.opcode == "broadcast" and o.operands[0].shape.rank == 0:
            continue
        elif o.shape.rank or not i.shape.rank:
            return None
    if inside is None or i.opcode in ("copy", "reduce-precision") or i.shape.num_elements == 0:
        return None
    operands = []
    for o in i.operands:
        if o.opcode == "reshape":
            operands.append(o.operands[0])
        else:
            operands.append(b.broadcast(o.operands[0], inside, ()) if o.opcode == "broadcast" else o)
    return b.reshape(b.like(i, operands, i.shape.with_dims(inside)), i.shape.dims)


@rule("iota")
def iota_of_one(i: Instruction, b: Builder) -> Instruction | None:
    """iota() along a dimension of size 1 == 0

    ROOT r = s32[1,4] iota(), iota_dimension=0
    ->
    zero = s32[] constant(0)
    ROOT r = s32[1,4] broadcast(zero), dimensions={}
    """
    return b.splat(i.shape, 0) if i.shape.dims[i.attrs["iota_dimension"]] == 1 else None


@rule("transpose")
def transpose_nothing(i: Instruction, b: Builder) -> Instruction | None:
    """transpose(x) by the identity == x

    ROOT r = f32[2,3] transpose(f32[2,3] x), dimensions={0,1}
    ->
    ROOT x
    """
    permutation = i.attrs["dimensions"]
    return i.operands[0] if permutation == tuple(range(len(permutation))) else None


@rule("transpose", operand="transpose")
def transpose_of_transpose(i: Instruction, b: Builder) -> Instruction | None:
    """transpose(transpose(x, p), q) == transpose(x, p[q])

    a = f32[3,2,4] transpose(f32[2,3,4] x), dimensions={1,0,2}
    ROOT r = f32[3,4,2] transpose(a), dimensions={0,2,1}
    ->
    ROOT r = f32[3,4,2] transpose(x), dimensions={1,2,0}
    """
    match i.operands:
        case [Instruction(opcode="transpose", operands=[x], attrs={"dimensions": inner})]:
            return b.transpose(x, [inner[d] for d in i.attrs["dimensions"]])
    return None


@rule("transpose")
def transpose_of_size_one(i: Instruction, b: Builder) -> Instruction | None:
    """transpose(x) == reshape(x) where only dimensions of size 1 change places

    ROOT r = f32[4,1,3] transpose(f32[1,4,3] x), dimensions={1,0,2}
    ->
    ROOT r = f32[4,1,3] reshape(x)
    """
    x = i.operands[0]
    moving = [d for d in i.attrs["dimensions"] if x.shape.dims[d] != 1]
    return b.reshape(x, i.shape.dims) if moving == sorted(moving) and not any(x.shape.dynamic) else None


@rule("transpose", operand="broadcast")
def transpose_of_broadcast(i: Instruction, b: Builder) -> Instruction | None:
    """transpose(broadcast(x)) == broadcast(transpose(x))

    a = f32[2,3] broadcast(f32[3] x), dimensions={1}
    ROOT r = f32[3,2] transpose(a), dimensions={1,0}
    ->
    ROOT r = f32[3,2] broadcast(x), dimensions={0}
    """
    match i.operands:
        case [Instruction(opcode="broadcast", operands=[x], attrs={"dimensions": dimensions})]:
            permutation = i.attrs["dimensions"]
            # where each dimension of x ends up, and the order they end up in
            places = [permutation.index(d) for d in dimensions]
            order = sorted(range(len(places)), key=places.__getitem__)
            return b.broadcast(b.transpose(x, order), i.shape.dims, sorted(places))
    return None


@rule("transpose", operand="iota")
def transpose_of_iota(i: Instruction, b: Builder) -> Instruction | None:
    """transpose(iota()) == iota() along the moved dimension

    it = s32[2,8] iota(), iota_dimension=1
    ROOT r = s32[8,2] transpose(it), dimensions={1,0}
    ->
    ROOT r = s32[8,2] iota(), iota_dimension=0
    """
    it = i.operands[0]
    if it.opcode != "iota":
        return None
    place = i.attrs["dimensions"].index(it.attrs["iota_dimension"])
    return b.add("iota", [], i.shape.with_default_layout(), iota_dimension=place)
