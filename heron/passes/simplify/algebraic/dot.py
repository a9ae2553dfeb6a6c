"""Dots with nothing to sum, dots by nothing."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import F32, F64, ElementType
from heron.passes.rewriting.building import applied
from heron.passes.rewriting.dimensions import common_groups
from heron.passes.rewriting.rules import Builder, rule


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
    """dot(x, y) over dimensions of size 1 == the products of x's and y's elements, in a type that holds them

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
    t = _product_type(i)
    if t is None or i.shape.num_elements == 0:
        return None
    if any(x.shape.dims[d] != 1 for d in i.lhs_contracting_dims):
        return None
    batches = len(i.lhs_batch_dims)
    x, y = b.convert(x, t), b.convert(y, t)
    lhs = _spread(x, i.lhs_batch_dims, i.lhs_contracting_dims, batches, i, b)
    left = x.shape.rank - batches - len(i.lhs_contracting_dims)
    rhs = _spread(y, i.rhs_batch_dims, i.rhs_contracting_dims, batches + left, i, b)
    return b.convert(b.add("multiply", [lhs, rhs], i.shape.with_type(t)), i.shape.element_type)


def _product_type(i: Instruction) -> ElementType | None:
    """A type in which the products of a dot are exact, or its own; None if its types go together in no such way."""
    t, types = i.shape.element_type, {x.shape.element_type for x in (i, *i.operands)}
    if len(types) == 1:
        return t
    if all(x.is_float for x in types):
        return F64 if F64 in types else F32
    return t if all(x.is_integer and 8 <= x.bits <= t.bits for x in types) else None


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


@rule("dot")
def dot_without_ones(i: Instruction, b: Builder) -> Instruction | None:
    """dot(x, y) == reshape(dot(x, y)) without the dimensions of size 1

    ROOT r = f32[1,3,5] dot(f32[1,3,4] x, f32[1,4,5] y), lhs_batch_dims={0}, lhs_contracting_dims={2},
      rhs_batch_dims={0}, rhs_contracting_dims={1}
    ->
    p = f32[3,4] reshape(x)
    q = f32[4,5] reshape(y)
    d = f32[3,5] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT r = f32[1,3,5] reshape(d)
    """
    if len(i.operands) != 2 or all(1 not in x.shape.dims for x in i.operands):
        return None
    if all(i.operands[0].shape.dims[d] == 1 for d in i.lhs_contracting_dims):
        return None  # a product of elements, not a sum
    attrs, operands = dict(i.attrs), []
    for side, x in zip(("lhs", "rhs"), i.operands, strict=True):
        kept = [d for d, size in enumerate(x.shape.dims) if size != 1]
        operands.append(b.reshape(x, [x.shape.dims[d] for d in kept]))
        for kind in ("batch", "contracting"):
            name = f"{side}_{kind}_dims"
            attrs[name] = tuple([kept.index(d) for d in i.attrs.get(name, ()) if d in kept])
    dims = tuple([size for size in i.shape.dims if size != 1])
    return b.reshape(b.add("dot", operands, i.shape.with_dims(dims), **attrs), i.shape.dims)


@rule("dot")
def dot_of_vectors(i: Instruction, b: Builder) -> Instruction | None:
    """dot(x, y) with batch and contracting dimensions only == sum(x * y), in types that are summed as they are

    ROOT r = f32[2] dot(f32[2,4] x, f32[2,4] y), lhs_batch_dims={0}, lhs_contracting_dims={1},
      rhs_batch_dims={0}, rhs_contracting_dims={1}
    ->
    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    m = f32[2,4] multiply(x, y)
    zero = f32[] constant(0)
    ROOT r = f32[2] reduce(m, zero), dimensions={1}, to_apply=sum
    """
    if len(i.operands) != 2 or i.attrs.get("algorithm") or not i.lhs_contracting_dims:
        return None
    x, y = i.operands
    t, batch, module = i.shape.element_type, len(i.lhs_batch_dims), b.computation.module
    if len({x.shape.element_type, y.shape.element_type, t}) > 1 or t.bits < 32 or module is None:
        return None
    if any(s.shape.rank != batch + len(i.lhs_contracting_dims) for s in (x, y)):
        return None
    left = b.transpose(x, [*i.lhs_batch_dims, *i.lhs_contracting_dims])
    right = b.transpose(y, [*i.rhs_batch_dims, *i.rhs_contracting_dims])
    return b.add(
        "reduce",
        [b.add("multiply", [left, right], left.shape), b.scalar(t, 0)],
        i.shape,
        dimensions=tuple(range(batch, left.shape.rank)),
        to_apply=applied(module, "add", t),
    )


@rule("dot", operand="transpose")
def dot_of_transposes(i: Instruction, b: Builder) -> Instruction | None:
    """dot(transpose(x), transpose(y)) == transpose(dot(y, x)) where both are the same transpose of matrices

    p = f32[4,3] transpose(f32[3,4] x), dimensions={1,0}
    q = f32[3,5] transpose(f32[5,3] y), dimensions={1,0}
    ROOT r = f32[4,5] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ->
    d = f32[5,4] dot(y, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT r = f32[4,5] transpose(d), dimensions={1,0}
    """
    p, q = i.operands[:2]
    if len(i.operands) != 2 or p.opcode != "transpose" or q.opcode != "transpose":
        return None
    permutation, rank, batch = p.attrs["dimensions"], i.shape.rank, len(i.lhs_batch_dims)
    if permutation != q.attrs["dimensions"] or rank != batch + 2 or p.shape.rank != rank:
        return None
    if i.lhs_batch_dims != tuple(range(batch)) or i.rhs_batch_dims != tuple(range(batch)):
        return None
    if i.lhs_contracting_dims != (rank - 1,) or i.rhs_contracting_dims != (rank - 2,):
        return None
    swapped = tuple(permutation[batch:]) == (rank - 1, rank - 2)
    if not swapped and tuple(permutation[batch:]) != (rank - 2, rank - 1):
        return None
    x, y = p.operands[0], q.operands[0]
    attrs = dict(i.attrs)
    if swapped and attrs.get("operand_precision"):
        attrs["operand_precision"] = attrs["operand_precision"][::-1]
    dims = [0] * rank
    for place, d in enumerate(permutation):
        dims[d] = i.shape.dims[place]
    d = b.add("dot", [y, x] if swapped else [x, y], i.shape.with_dims(tuple(dims)), **attrs)
    return b.transpose(d, permutation)


@rule("dot", operand="concatenate")
def dot_of_joined(i: Instruction, b: Builder) -> Instruction | None:
    """dot(concatenate(x, y), c) == dot(x, part of c) + dot(y, part of c) for a constant matrix c

    c = f32[3,2] constant({{1, 2}, {3, 4}, {5, 6}})
    j = f32[4,3] concatenate(f32[4,1] x, f32[4,2] y), dimensions={1}
    ROOT r = f32[4,2] dot(j, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ->
    d = f32[1,2] slice(c), slice={[0:1], [0:2]}
    p = f32[4,2] dot(x, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    e = f32[2,2] slice(c), slice={[1:3], [0:2]}
    q = f32[4,2] dot(y, e), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT r = f32[4,2] add(p, q)
    """
    if len(i.operands) != 2 or i.shape.rank != 2 or i.lhs_batch_dims or len(i.lhs_contracting_dims) != 1:
        return None
    sides = (i.lhs_contracting_dims[0], i.rhs_contracting_dims[0])
    for n in (0, 1):
        joined, c = i.operands[n], i.operands[1 - n]
        if joined.opcode != "concatenate" or c.opcode != "constant" or joined.attrs["dimensions"] != (sides[n],):
            continue
        total, offset = None, 0
        for x in joined.operands:
            size = x.shape.dims[sides[n]]
            part = [(0, whole, 1) for whole in c.shape.dims]
            part[sides[1 - n]] = (offset, offset + size, 1)
            piece = b.slice(c, part)
            d = b.like(i, [x, piece] if n == 0 else [piece, x], i.shape)
            total = d if total is None else b.add("add", [total, d], i.shape)
            offset += size
        return total
    return None


@rule("dot", operand="dynamic-slice")
def dot_of_chosen_row(i: Instruction, b: Builder) -> Instruction | None:
    """dot(dynamic-slice(c, n), d) == dynamic-slice(dot(c, d), n) for constant matrices, of which a row is taken

    c = f32[3,2] constant({{1, 2}, {3, 4}, {5, 6}})
    d = f32[2,2] constant({{1, 0}, {2, 1}})
    zero = s32[] constant(0)
    s = f32[1,2] dynamic-slice(c, s32[] n, zero), dynamic_slice_sizes={1,2}
    ROOT r = f32[1,2] dot(s, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ->
    e = f32[3,2] dot(c, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT r = f32[1,2] dynamic-slice(e, n, zero), dynamic_slice_sizes={1,2}
    """
    if len(i.operands) != 2 or i.shape.rank != 2 or i.lhs_batch_dims or len(i.lhs_contracting_dims) != 1:
        return None
    sides = (i.lhs_contracting_dims[0], i.rhs_contracting_dims[0])
    for n in (0, 1):
        s, d = i.operands[n], i.operands[1 - n]
        if s.opcode != "dynamic-slice" or s.operands[0].opcode != "constant" or d.opcode != "constant":
            continue
        c, *starts = s.operands
        summed, free = sides[n], 1 - sides[n]
        if s.shape.dims[free] != 1 or s.shape.dims[summed] != c.shape.dims[summed] or any(x.shape.rank for x in starts):
            continue
        dims = list(i.shape.dims)
        dims[n] = c.shape.dims[free]
        product = b.like(i, [c, d] if n == 0 else [d, c], i.shape.with_dims(tuple(dims)))
        places = [starts[free], starts[summed]] if n == 0 else [starts[summed], starts[free]]
        return b.add("dynamic-slice", [product, *places], i.shape, dynamic_slice_sizes=i.shape.dims)
    return None


@rule("dot", operand="reshape")
def dot_of_reordered_rows(i: Instruction, b: Builder) -> Instruction | None:
    """dot(reshape(transpose(x)), c) == dot(reshape(x), c with its rows in x's order) for a constant c

    c = f32[6,2] constant({{1, 2}, {3, 4}, {5, 6}, {7, 8}, {9, 10}, {11, 12}})
    t = f32[4,2,3] transpose(f32[4,3,2] x), dimensions={0,2,1}
    y = f32[4,6] reshape(t)
    ROOT r = f32[4,2] dot(y, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ->
    z = f32[4,6] reshape(x)
    d = f32[2,3,2] reshape(c)
    e = f32[3,2,2] transpose(d), dimensions={1,0,2}
    f = f32[6,2] reshape(e)
    ROOT r = f32[4,2] dot(z, f), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    """
    if len(i.operands) != 2 or len(i.lhs_contracting_dims) != 1:
        return None
    sides = (i.lhs_contracting_dims[0], i.rhs_contracting_dims[0])
    for n in (0, 1):
        y, c = i.operands[n], i.operands[1 - n]
        if y.opcode != "reshape" or y.operands[0].opcode != "transpose" or c.opcode != "constant":
            continue
        t = y.operands[0]
        x, permutation = t.operands[0], t.attrs["dimensions"]
        inner = next((old for old, new in common_groups(t.shape.dims, y.shape.dims) if new == [sides[n]]), None)
        if not inner or len(inner) < 2 or any(permutation[d] != d for d in range(t.shape.rank) if d not in inner):
            continue
        first, at = inner[0], sides[1 - n]
        order = [permutation[d] - first for d in inner]
        if sorted(order) != list(range(len(inner))) or order == sorted(order):
            continue
        apart = [*c.shape.dims[:at], *(t.shape.dims[d] for d in inner), *c.shape.dims[at + 1 :]]
        back = [order.index(k) for k in range(len(order))]
        turned = [*range(at), *(at + k for k in back), *range(at + len(inner), len(apart))]
        rows = b.reshape(b.transpose(b.reshape(c, apart), turned), c.shape.dims)
        plain = b.reshape(x, y.shape.dims)
        return b.like(i, [plain, rows] if n == 0 else [rows, plain], i.shape)
    return None


@rule("dot", operand="dot", math="reassociating")
def dot_the_cheaper_way_round(i: Instruction, b: Builder) -> Instruction | None:
    """dot(dot(x, y), z) == dot(x, dot(y, z)) up to rounding, for matrices, where it halves the work

    p = f32[8,8] dot(f32[8,2] x, f32[2,8] y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT r = f32[8,2] dot(p, f32[8,2] z), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ->
    q = f32[2,2] dot(y, z), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT r = f32[8,2] dot(x, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    """
    if not _is_matrix_product(i):
        return None
    for n, p in enumerate(i.operands):
        if not _is_matrix_product(p) or len(p.users) > 1:
            continue
        if n == 0:
            (x, y), z = p.operands, i.operands[1]
        else:
            x, (y, z) = i.operands[0], p.operands
        (rows, k), (_, m), columns = x.shape.dims, y.shape.dims, z.shape.dims[1]
        left, right = rows * k * m + rows * m * columns, k * m * columns + rows * k * columns
        before, after = (left, right) if n == 0 else (right, left)
        if before < 2 * after:
            continue
        if n == 0:
            q = b.like(p, [y, z], i.shape.with_dims((k, columns)))
            return b.like(i, [x, q], i.shape)
        q = b.like(p, [x, y], i.shape.with_dims((rows, m)))
        return b.like(i, [q, z], i.shape)
    return None


def _is_matrix_product(i: Instruction) -> bool:
    if i.opcode != "dot" or i.shape.rank != 2 or any(x.shape.rank != 2 for x in i.operands) or len(i.operands) != 2:
        return False
    return i.lhs_contracting_dims == (1,) and i.rhs_contracting_dims == (0,) and not i.lhs_batch_dims
