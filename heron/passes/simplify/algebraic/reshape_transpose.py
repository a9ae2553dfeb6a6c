"""Reshapes, transposes, reverses, copies of the index space."""

from __future__ import annotations

from heron.hlo.facts import reshapings
from heron.hlo.ir.instruction import Instruction
from heron.passes.rewriting.dimensions import common_groups, reshaped_broadcast, squeezed
from heron.passes.rewriting.rules import Builder, rule

#: how far up a chain of reshapes and transposes is followed
_LONGEST_CHAIN = 8
#: space-to-depth of more pieces stays a transpose
_FEW_PIECES = 5


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
    if a.opcode != "broadcast" or not i.shape.num_elements:
        return None
    x = a.operands[0]
    if x.shape.rank == 0:
        return b.broadcast(x, i.shape.dims, ())
    kept = a.attrs["dimensions"]
    found = reshaped_broadcast(kept, a.shape.dims, i.shape.dims) if list(kept) == sorted(kept) else None
    return b.broadcast(b.reshape(x, found[0]), i.shape.dims, found[1]) if found is not None else None


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


@rule("reshape", operand="dynamic-update-slice")
def reshape_of_update(i: Instruction, b: Builder) -> Instruction | None:
    """reshape(dynamic-update-slice(x, u, n)) == dynamic-update-slice(reshape(x), reshape(u), n)

    Where the reshape only adds or drops dimensions of size 1 and the update has no other use.

    y = f32[8,4] dynamic-update-slice(f32[8,4] x, f32[1,4] u, s32[] m, s32[] n)
    ROOT r = f32[8,1,4] reshape(y)
    ->
    z = f32[8,1,4] reshape(x)
    v = f32[1,1,4] reshape(u)
    zero = s32[] constant(0)
    ROOT r = f32[8,1,4] dynamic-update-slice(z, v, m, zero, n)
    """
    y = i.operands[0]
    if y.opcode != "dynamic-update-slice" or len(y.users) > 1 or squeezed(y.shape.dims) != squeezed(i.shape.dims):
        return None
    x, u, *starts = y.operands
    if i.shape.num_elements == 0 or not starts or any(s.shape.rank for s in starts):
        return None
    real = iter([d for d, size in enumerate(y.shape.dims) if size != 1])
    zero: Instruction | None = None
    sizes, moved = [], []
    for size in i.shape.dims:
        if size == 1:
            zero = zero or b.scalar(starts[0].shape.element_type, 0)
            sizes.append(1)
            moved.append(zero)
        else:
            d = next(real)
            sizes.append(u.shape.dims[d])
            moved.append(starts[d])
    return b.add("dynamic-update-slice", [b.reshape(x, i.shape.dims), b.reshape(u, sizes), *moved], i.shape)


@rule("reshape", "transpose", operand=reshapings())
def chain_to_nothing(i: Instruction, b: Builder) -> Instruction | None:
    """transpose(reshape(transpose(x))) == x, and the like: where sizes of 1 come and go and all else returns

    y = f32[3,2] transpose(f32[2,3] x), dimensions={1,0}
    z = f32[3,1,2] reshape(y)
    w = f32[2,1,3] transpose(z), dimensions={2,1,0}
    ROOT r = f32[2,3] reshape(w)
    ->
    ROOT x
    """
    order = [d for d, size in enumerate(i.shape.dims) if size != 1]
    places = list(range(len(order)))
    at = i
    for _ in range(_LONGEST_CHAIN):
        x = at.operands[0]
        if at.opcode == "transpose":
            permutation = at.attrs["dimensions"]
            outer = [permutation[d] for d, size in enumerate(at.shape.dims) if size != 1]
            inner = [d for d, size in enumerate(x.shape.dims) if size != 1]
            places = [inner.index(outer[p]) for p in places]
        elif at.opcode != "reshape" or squeezed(x.shape.dims) != squeezed(at.shape.dims):
            return None
        if places == list(range(len(order))) and x.shape.dims == i.shape.dims:
            return x
        if x.opcode not in reshapings():
            return None
        at = x
    return None


@rule("reshape", operand="transpose")
def reshape_of_moved_blocks(i: Instruction, b: Builder) -> Instruction | None:
    """reshape(transpose(reshape(x))) == transpose(reshape(x)) where what the outer reshape joins stayed together

    y = f32[2,3,4] reshape(f32[6,4] x)
    z = f32[4,2,3] transpose(y), dimensions={2,0,1}
    ROOT r = f32[4,6] reshape(z)
    ->
    ROOT r = f32[4,6] transpose(x), dimensions={1,0}
    """
    match i.operands:
        case [Instruction(opcode="transpose", operands=[Instruction(opcode="reshape", operands=[x])]) as z]:
            pass
        case _:
            return None
    permutation = z.attrs["dimensions"]
    blocks: list[tuple[int, int]] = []  # where each dimension of the result began in the reshaped x, and its size
    for old, new in common_groups(z.shape.dims, i.shape.dims):
        if len(new) != 1 or not old:
            return None
        first = permutation[old[0]]
        if [permutation[d] for d in old] != list(range(first, first + len(old))):
            return None
        blocks.append((first, i.shape.dims[new[0]]))
    order = sorted(range(len(blocks)), key=blocks.__getitem__)
    inner = b.reshape(x, [blocks[n][1] for n in order])
    return b.transpose(inner, [order.index(n) for n in range(len(blocks))])


@rule("reshape", operand="transpose")
def space_to_depth(i: Instruction, b: Builder) -> Instruction | None:
    """reshape(transpose(reshape(x))) == reshape(concatenate(slices of x)) where a few pieces of a dimension move away

    y = f32[2,3,4,5] reshape(f32[6,4,5] x)
    z = f32[3,4,2,5] transpose(y), dimensions={1,2,0,3}
    ROOT r = f32[3,8,5] reshape(z)
    ->
    s = f32[3,4,5] slice(x), slice={[0:3], [0:4], [0:5]}
    t = f32[3,4,5] slice(x), slice={[3:6], [0:4], [0:5]}
    c = f32[3,4,10] concatenate(s, t), dimensions={2}
    ROOT r = f32[3,8,5] reshape(c)
    """
    match i.operands:
        case [Instruction(opcode="transpose", operands=[Instruction(opcode="reshape", operands=[x]) as y]) as z]:
            pass
        case _:
            return None
    rank, permutation = x.shape.rank, z.attrs["dimensions"]
    if y.shape.rank != rank + 1 or i.shape.rank != rank or len(z.users) > 1:
        return None
    split = next((d for d in range(rank) if x.shape.dims[d] != y.shape.dims[d]), None)
    if split is None or x.shape.dims[split + 1 :] != y.shape.dims[split + 2 :]:
        return None
    pieces, size = y.shape.dims[split], y.shape.dims[split + 1]
    to = permutation.index(split)
    rest = [d for d in range(rank + 1) if d != split]
    if not 1 < pieces <= _FEW_PIECES or to in (split, split + 1) or to >= rank or to == 0:
        return None
    if list(permutation) != rest[:to] + [split] + rest[to:]:
        return None
    wanted = list(x.shape.dims)
    wanted[split] = size
    wanted[to - 1] *= pieces
    if list(i.shape.dims) != wanted:
        return None
    whole = [(0, n, 1) for n in x.shape.dims]
    cut = [(*whole[:split], (n * size, (n + 1) * size, 1), *whole[split + 1 :]) for n in range(pieces)]
    dims = list(x.shape.dims)
    dims[split] = size
    dims[to] *= pieces
    joined = b.add("concatenate", [b.slice(x, part) for part in cut], x.shape.with_dims(tuple(dims)), dimensions=(to,))
    return b.reshape(joined, i.shape.dims)


@rule("transpose", operand="dot")
def transpose_of_dot(i: Instruction, b: Builder) -> Instruction | None:
    """transpose(dot(x, y)) == dot(y, x) where it exchanges their free dimensions and the dot has no other use

    d = f32[4,6] dot(f32[4,8] x, f32[8,6] y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT r = f32[6,4] transpose(d), dimensions={1,0}
    ->
    ROOT r = f32[6,4] dot(y, x), lhs_contracting_dims={0}, rhs_contracting_dims={1}
    """
    d = i.operands[0]
    if d.opcode != "dot" or len(d.operands) != 2 or len(d.users) > 1:
        return None
    x, y = d.operands
    batch = len(d.lhs_batch_dims)
    left = x.shape.rank - batch - len(d.lhs_contracting_dims)
    permutation = i.attrs["dimensions"]
    exchanged = (*range(batch + left, d.shape.rank), *range(batch, batch + left))
    if tuple(permutation[batch:]) != exchanged:
        return None
    attrs = dict(d.attrs)
    attrs["lhs_contracting_dims"], attrs["rhs_contracting_dims"] = d.rhs_contracting_dims, d.lhs_contracting_dims
    attrs["lhs_batch_dims"] = tuple([d.rhs_batch_dims[p] for p in permutation[:batch]])
    attrs["rhs_batch_dims"] = tuple([d.lhs_batch_dims[p] for p in permutation[:batch]])
    if attrs.get("operand_precision"):
        attrs["operand_precision"] = attrs["operand_precision"][::-1]
    return b.add("dot", [y, x], i.shape, **attrs)
