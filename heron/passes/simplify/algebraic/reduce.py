"""Reductions of what was only moved, repeated or has size 1."""

from __future__ import annotations

from math import prod

from heron.analysis.values.splat import is_splat, splat_value
from heron.hlo.facts import combiner, having
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.passes.rewriting.dimensions import common_groups
from heron.passes.rewriting.rules import KNOWN, Builder, rule
from heron.passes.simplify.algebraic.reduce_functions import is_neutral

_IDEMPOTENT = having(Trait.IDEMPOTENT)


def _parts(i: Instruction) -> tuple[Instruction, Instruction] | None:
    """The array and the initial value of a reduction of one array."""
    return (i.operands[0], i.operands[1]) if len(i.operands) == 2 else None


@rule("reduce")
def reduce_nothing(i: Instruction, b: Builder) -> Instruction | None:
    """reduce(x) over no dimensions or only ones of size 1 == x, or init op x where init is not neutral

    zero = f32[] constant(0)
    ROOT r = f32[4] reduce(f32[4,1] x, zero), dimensions={1}, to_apply=sum

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }
    ->
    ROOT r = f32[4] reshape(x)
    """
    found = _parts(i)
    if found is None:
        return None
    x, init = found
    op = combiner(i.to_apply)
    if op is None or x.shape.num_elements != i.shape.num_elements:
        return None
    flat = b.reshape(x, i.shape.dims)
    if is_neutral(op, init):
        return flat
    return b.add(op, [b.broadcast(init, i.shape.dims, ()), flat], i.shape)


@rule("reduce")
def reduce_size_one(i: Instruction, b: Builder) -> Instruction | None:
    """reduce(x) over some dimensions of size 1 == reduce(reshape(x)) without them

    ROOT r = f32[4] reduce(f32[1,4,8] x, f32[] init), dimensions={0,2}, to_apply=sum

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }
    ->
    y = f32[4,8] reshape(x)
    ROOT r = f32[4] reduce(y, init), dimensions={1}, to_apply=sum
    """
    found = _parts(i)
    if found is None:
        return None
    x, init = found
    ones = [d for d in i.dimensions if x.shape.dims[d] == 1]
    if not ones or len(ones) == len(i.dimensions):
        return None
    kept = [d for d in range(x.shape.rank) if d not in ones]
    left = tuple(kept.index(d) for d in i.dimensions if d not in ones)
    y = b.reshape(x, [x.shape.dims[d] for d in kept])
    return b.add("reduce", [y, init], i.shape, dimensions=left, to_apply=i.to_apply)


@rule("reduce", operand="transpose")
def reduce_of_transpose(i: Instruction, b: Builder) -> Instruction | None:
    """reduce(transpose(x)) == reduce(x), then transposed if what is left changed order

    t = f32[8,4] transpose(f32[4,8] x), dimensions={1,0}
    ROOT r = f32[4] reduce(t, f32[] init), dimensions={0}, to_apply=sum

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }
    ->
    ROOT r = f32[4] reduce(x, init), dimensions={1}, to_apply=sum
    """
    found = _parts(i)
    if found is None or found[0].opcode != "transpose" or combiner(i.to_apply) is None:
        return None
    t, init = found
    x, permutation = t.operands[0], t.attrs["dimensions"]
    reduced = sorted(permutation[d] for d in i.dimensions)
    kept = [permutation[d] for d in range(x.shape.rank) if d not in i.dimensions]
    dims = tuple(x.shape.dims[d] for d in sorted(kept))
    small = b.add("reduce", [x, init], i.shape.with_dims(dims), dimensions=tuple(reduced), to_apply=i.to_apply)
    return b.transpose(small, [sorted(kept).index(d) for d in kept])


@rule("reduce", operand="reshape")
def reduce_of_reshape(i: Instruction, b: Builder) -> Instruction | None:
    """reduce(reshape(x)) == reshape(reduce(x)) where the reshape keeps reduced and kept dimensions apart

    y = f32[4,6] reshape(f32[4,2,3] x)
    ROOT r = f32[4] reduce(y, f32[] init), dimensions={1}, to_apply=sum

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }
    ->
    ROOT r = f32[4] reduce(x, init), dimensions={1,2}, to_apply=sum
    """
    found = _parts(i)
    if found is None or found[0].opcode != "reshape" or combiner(i.to_apply) is None:
        return None
    y, init = found
    x = y.operands[0]
    if x.shape.num_elements == 0:
        return None
    reduced: list[int] = []
    for old, new in common_groups(x.shape.dims, y.shape.dims):
        count = sum(d in i.dimensions for d in new)
        if not count:
            continue
        if count != len(new):
            return None
        reduced += old
    if not reduced:
        return None
    dims = tuple(size for d, size in enumerate(x.shape.dims) if d not in reduced)
    if dims != i.shape.dims and len(x.shape.dims) > len(y.shape.dims):
        return None  # the reshape would only move behind the reduce, and its input has more dimensions
    small = b.add("reduce", [x, init], i.shape.with_dims(dims), dimensions=tuple(reduced), to_apply=i.to_apply)
    return b.reshape(small, i.shape.dims)


@rule("reduce", operand="reduce")
def reduce_of_reduce(i: Instruction, b: Builder) -> Instruction | None:
    """reduce(reduce(x)) == reduce(x) over both, by one op with a neutral initial value

    zero = f32[] constant(0)
    y = f32[4,8] reduce(f32[4,8,2] x, zero), dimensions={2}, to_apply=sum
    ROOT r = f32[4] reduce(y, zero), dimensions={1}, to_apply=sum

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }
    ->
    ROOT r = f32[4] reduce(x, zero), dimensions={1,2}, to_apply=sum
    """
    match i.operands:
        case [Instruction(opcode="reduce", operands=[x, inner_init]) as y, init]:
            op = combiner(i.to_apply)
            if op is None or op != combiner(y.to_apply) or len(y.users) > 1:
                return None
            if not is_neutral(op, inner_init) or not (is_neutral(op, init) or init is inner_init):
                return None
            kept = [d for d in range(x.shape.rank) if d not in y.dimensions]
            dimensions = sorted([*y.dimensions, *(kept[d] for d in i.dimensions)])
            return b.add("reduce", [x, init], i.shape, dimensions=tuple(dimensions), to_apply=i.to_apply)
    return None


@rule("reduce", operand="broadcast")
def reduce_of_repeated(i: Instruction, b: Builder) -> Instruction | None:
    """reduce(broadcast(x)) == reduce(x) over new dimensions, where op(x, x) == x

    y = f32[4,8] broadcast(f32[4] x), dimensions={0}
    ROOT r = f32[] reduce(y, f32[] init), dimensions={0,1}, to_apply=largest

    largest {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT m = f32[] maximum(a, b)
    }
    ->
    ROOT r = f32[] reduce(x, init), dimensions={0}, to_apply=largest
    """
    split = _repeated(i) if combiner(i.to_apply) in _IDEMPOTENT else None
    if split is None:
        return None
    x, init, dimensions, _ = split
    kept = tuple([size for d, size in enumerate(x.shape.dims) if d not in dimensions])
    if kept != i.shape.dims:
        return None
    return b.add("reduce", [x, init], i.shape, dimensions=dimensions, to_apply=i.to_apply)


@rule("reduce", operand="broadcast", floats="reassociating")
def sum_of_repeated(i: Instruction, b: Builder) -> Instruction | None:
    """sum(broadcast(x)) == sum(x) * count, for floats up to rounding; XLA does it by default

    zero = f32[] constant(0)
    y = f32[4,8] broadcast(f32[4] x), dimensions={0}
    ROOT r = f32[] reduce(y, zero), dimensions={0,1}, to_apply=sum

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }
    ->
    s = f32[] reduce(x, zero), dimensions={0}, to_apply=sum
    eight = f32[] constant(8)
    ROOT r = f32[] multiply(s, eight)
    """
    split = _repeated(i)
    if split is None or combiner(i.to_apply) != "add" or not is_splat(split[1], 0):
        return None
    x, init, dimensions, count = split
    if dimensions:
        x = b.add("reduce", [x, init], i.shape, dimensions=dimensions, to_apply=i.to_apply)
    return b.add("multiply", [x, b.splat(i.shape, count)], i.shape)


def _repeated(i: Instruction) -> tuple[Instruction, Instruction, tuple[int, ...], int] | None:
    """For a reduction over what a broadcast added: its operand, init, what of it is reduced, how often each counts."""
    found = _parts(i)
    if found is None or found[0].opcode != "broadcast":
        return None
    y, init = found
    x, mapped = y.operands[0], y.attrs["dimensions"]
    new = [d for d in i.dimensions if d not in mapped]
    # what the broadcast added must be reduced away altogether
    if not new or len(new) != y.shape.rank - x.shape.rank or list(mapped) != sorted(mapped):
        return None
    count = prod(y.shape.dims[d] for d in new)
    return x, init, tuple(n for n, d in enumerate(mapped) if d in i.dimensions), count


@rule("reduce")
def reduce_of_empty(i: Instruction, b: Builder) -> Instruction | None:
    """reduce(x) of no elements == broadcast(init)

    ROOT r = f32[4] reduce(f32[4,0] x, f32[] init), dimensions={1}, to_apply=sum

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }
    ->
    ROOT r = f32[4] broadcast(init), dimensions={}
    """
    found = _parts(i)
    if found is None or found[0].shape.num_elements:
        return None
    return b.broadcast(found[1], i.shape.dims, ())


@rule("reduce", operand=KNOWN)
def reduce_of_known(i: Instruction, b: Builder) -> Instruction | None:
    """and(true, true, ...) == true, max(c, c, ...) == c when c is also the initial value

    t = pred[] constant(true)
    ts = pred[4] broadcast(t), dimensions={}
    ROOT r = pred[] reduce(ts, t), dimensions={0}, to_apply=all

    all {
      a = pred[] parameter(0)
      b = pred[] parameter(1)
      ROOT c = pred[] and(a, b)
    }
    ->
    ROOT t
    """
    found = _parts(i)
    if found is None or combiner(i.to_apply) not in _IDEMPOTENT:
        return None
    x, init = found
    value, start = splat_value(x), splat_value(init)
    if value is None or start is None or value.tobytes() != start.tobytes():
        return None
    return b.broadcast(init, i.shape.dims, ())
