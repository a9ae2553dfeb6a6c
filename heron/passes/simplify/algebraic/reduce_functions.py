"""Reductions: of sums, products, joined arrays, and by functions of several arrays."""

from __future__ import annotations

from collections.abc import Callable

from heron.analysis.values.splat import is_splat, splat_value
from heron.hlo import facts
from heron.hlo.facts import combiner
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.passes.rewriting.rules import Builder, rule

Test = Callable[[Instruction], bool]
#: how many users of an array are looked at for an argmax over it
_FEW_USERS = 16


@rule("reduce")
def reduce_size_one_by_any(i: Instruction, b: Builder) -> Instruction | None:
    """reduce(x) over dimensions of size 1 by any function == map(init, x) by that function

    odd {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      c = f32[] multiply(a, b)
      ROOT d = f32[] add(c, b)
    }

    ROOT r = f32[4] reduce(f32[4,1] x, f32[] init), dimensions={1}, to_apply=odd
    ->
    inits = f32[4] broadcast(init), dimensions={}
    y = f32[4] reshape(x)
    ROOT r = f32[4] map(inits, y), dimensions={0}, to_apply=odd
    """
    if len(i.operands) != 2 or combiner(i.to_apply) is not None:
        return None
    x, init = i.operands
    if x.shape.num_elements != i.shape.num_elements or x.shape.element_type is not init.shape.element_type:
        return None
    operands = [b.broadcast(init, i.shape.dims, ()), b.reshape(x, i.shape.dims)]
    return b.add("map", operands, i.shape, dimensions=tuple(range(i.shape.rank)), to_apply=i.to_apply)


@rule("reduce")
def reduce_several_of_empty(i: Instruction, b: Builder) -> Instruction | None:
    """reduce(x, y) of no elements == tuple(broadcast(init), broadcast(init))

    both {
      a = f32[] parameter(0)
      b = s32[] parameter(1)
      c = f32[] parameter(2)
      d = s32[] parameter(3)
      ROOT t = (f32[], s32[]) tuple(c, d)
    }

    ROOT r = (f32[4], s32[4]) reduce(f32[4,0] x, s32[4,0] y, f32[] v, s32[] w), dimensions={1}, to_apply=both
    ->
    p = f32[4] broadcast(v), dimensions={}
    q = s32[4] broadcast(w), dimensions={}
    ROOT r = (f32[4], s32[4]) tuple(p, q)
    """
    count = len(i.operands) // 2
    if count < 2 or i.operands[0].shape.num_elements:
        return None
    parts = [b.broadcast(v, s.dims, ()) for v, s in zip(i.operands[count:], i.shape.tuple_shapes or (), strict=True)]
    return b.add("tuple", parts, i.shape)


@rule("reduce", operand="negate", math="reassociating")
def sum_of_negated(i: Instruction, b: Builder) -> Instruction | None:
    """sum(-x) == -sum(x) but for the sign of 0; XLA does it by default

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    zero = f32[] constant(0)
    n = f32[4,8] negate(f32[4,8] x)
    ROOT r = f32[4] reduce(n, zero), dimensions={1}, to_apply=sum
    ->
    s = f32[4] reduce(x, zero), dimensions={1}, to_apply=sum
    ROOT r = f32[4] negate(s)
    """
    match i.operands:
        case [Instruction(opcode="negate", operands=[x]), zero] if is_splat(zero, 0):
            if combiner(i.to_apply) != "add" or i.shape.element_type.is_unsigned:
                return None
            return b.add("negate", [b.like(i, [x, zero], i.shape)], i.shape)
    return None


@rule("reduce", operand="concatenate")
def reduce_of_joined(i: Instruction, b: Builder) -> Instruction | None:
    """reduce(concatenate(x, y)) == op(reduce(x), reduce(y)) along a reduced dimension, for a neutral initial value

    largest {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT m = f32[] maximum(a, b)
    }

    low = f32[] constant(-inf)
    c = f32[7] concatenate(f32[3] x, f32[4] y), dimensions={0}
    ROOT r = f32[] reduce(c, low), dimensions={0}, to_apply=largest
    ->
    p = f32[] reduce(x, low), dimensions={0}, to_apply=largest
    q = f32[] reduce(y, low), dimensions={0}, to_apply=largest
    ROOT r = f32[] maximum(p, q)
    """
    if len(i.operands) != 2 or i.operands[0].opcode != "concatenate":
        return None
    c, init = i.operands
    op = combiner(i.to_apply)
    if op is None or c.attrs["dimensions"][0] not in i.dimensions or not is_neutral(op, init):
        return None
    total: Instruction | None = None
    for x in c.operands:
        part = b.like(i, [x, init], i.shape)
        total = part if total is None else b.add(op, [total, part], i.shape)
    return total


def is_neutral(op: str, init: Instruction) -> bool:
    """Whether `init` is the op's identity, which HLO lets a reduction use any number of times.

    For float sums +0 is taken as one too, although it makes a 0 of a -0.
    """
    if op == "add":
        return is_splat(init, 0)
    neutral = facts.identity(op, init.shape.element_type)
    return neutral is not None and is_splat(init, neutral)


@rule("reduce", operand="dot")
def sum_of_dot(i: Instruction, b: Builder) -> Instruction | None:
    """sum(dot(x, y)) over batch dimensions == dot(x, y) that contracts them, where the dot has no other use

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    zero = f32[] constant(0)
    d = f32[2,3,5] dot(f32[2,3,4] x, f32[2,4,5] y), lhs_batch_dims={0}, lhs_contracting_dims={2},
      rhs_batch_dims={0}, rhs_contracting_dims={1}
    ROOT r = f32[3,5] reduce(d, zero), dimensions={0}, to_apply=sum
    ->
    ROOT r = f32[3,5] dot(x, y), lhs_contracting_dims={2,0}, rhs_contracting_dims={1,0}
    """
    if len(i.operands) != 2 or i.operands[0].opcode != "dot" or not is_splat(i.operands[1], 0):
        return None
    d, zero = i.operands
    if combiner(i.to_apply) != "add" or len(d.users) > 1 or len(d.operands) != 2:
        return None
    batch = len(d.lhs_batch_dims)
    summed = [n for n in range(batch) if n in i.dimensions]
    if not summed:
        return None
    attrs = dict(d.attrs)
    for side in ("lhs", "rhs"):
        dims = attrs[f"{side}_batch_dims"]
        attrs[f"{side}_contracting_dims"] = (*attrs[f"{side}_contracting_dims"], *(dims[n] for n in summed))
        attrs[f"{side}_batch_dims"] = tuple([dims[n] for n in range(batch) if n not in summed])
    kept = [n for n in range(d.shape.rank) if n not in summed]
    small = b.add("dot", d.operands, d.shape.with_dims(tuple([d.shape.dims[n] for n in kept])), **attrs)
    left = tuple([kept.index(n) for n in i.dimensions if n not in summed])
    return b.add("reduce", [small, zero], i.shape, dimensions=left, to_apply=i.to_apply) if left else small


def _sums_free_dimensions(i: Instruction) -> bool:
    """Whether `i` sums a dot, in one type and without another use, over dimensions that are none of its batch."""
    if len(i.operands) != 2 or i.operands[0].opcode != "dot" or not is_splat(i.operands[1], 0):
        return False
    d = i.operands[0]
    if combiner(i.to_apply) != "add" or len(d.users) > 1 or len(d.operands) != 2:
        return False
    if any(o.shape.element_type is not i.shape.element_type for o in d.operands):
        return False
    return bool(i.dimensions) and min(i.dimensions) >= len(d.lhs_batch_dims)


@rule("reduce", operand="dot", floats="reassociating")
def sum_of_free_dot(i: Instruction, b: Builder) -> Instruction | None:
    """sum(dot(x, y)) over free dimensions == dot(sum(x), sum(y)) without another use, for floats up to rounding

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    zero = f32[] constant(0)
    d = f32[3,5] dot(f32[3,4] x, f32[4,5] y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT r = f32[3] reduce(d, zero), dimensions={1}, to_apply=sum
    ->
    z = f32[4] reduce(y, zero), dimensions={1}, to_apply=sum
    ROOT r = f32[3] dot(x, z), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    """
    if not _sums_free_dimensions(i):
        return None
    d, zero = i.operands
    places, attrs, operands = iter(range(len(d.lhs_batch_dims), d.shape.rank)), dict(d.attrs), []
    for side, x in zip(("lhs", "rhs"), d.operands, strict=True):
        keys = (f"{side}_batch_dims", f"{side}_contracting_dims")
        own = [n for key in keys for n in getattr(d, key)]
        gone = tuple([n for n in range(x.shape.rank) if n not in own and next(places) in i.dimensions])
        kept = [n for n in range(x.shape.rank) if n not in gone]
        if gone:
            small = x.shape.with_dims(tuple([x.shape.dims[n] for n in kept]))
            x = b.add("reduce", [x, zero], small, dimensions=gone, to_apply=i.to_apply)
        operands.append(x)
        for key in keys:
            attrs[key] = tuple([kept.index(n) for n in getattr(d, key)])
    return b.add("dot", operands, i.shape, **attrs)


@rule("reduce", operand="broadcast")
def reduce_beside_repeated(i: Instruction, b: Builder) -> Instruction | None:
    """reduce(broadcast(x)) == broadcast(reduce(x)) over dimensions that x has

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    y = f32[3,4,8] broadcast(f32[4,8] x), dimensions={1,2}
    ROOT r = f32[3,4] reduce(y, f32[] init), dimensions={2}, to_apply=sum
    ->
    s = f32[4] reduce(x, init), dimensions={1}, to_apply=sum
    ROOT r = f32[3,4] broadcast(s), dimensions={1}
    """
    if len(i.operands) != 2 or i.operands[0].opcode != "broadcast":
        return None
    y, init = i.operands
    x, mapped = y.operands[0], y.attrs["dimensions"]
    if any(d not in mapped for d in i.dimensions) or len(mapped) == y.shape.rank or list(mapped) != sorted(mapped):
        return None
    gone = tuple(sorted(mapped.index(d) for d in i.dimensions))
    dims = tuple([size for n, size in enumerate(x.shape.dims) if n not in gone])
    small = b.add("reduce", [x, init], i.shape.with_dims(dims), dimensions=gone, to_apply=i.to_apply)
    left = [d for d in range(y.shape.rank) if d not in i.dimensions]
    return b.broadcast(small, i.shape.dims, [left.index(d) for n, d in enumerate(mapped) if n not in gone])


@rule("reduce", operand="broadcast")
def arg_of_broadcast(i: Instruction, b: Builder) -> Instruction | None:
    """argmax(broadcast(c)) == (c, 0) for a number c, and argmin alike

    argmax {
      v = f32[] parameter(0)
      n = s32[] parameter(1)
      w = f32[] parameter(2)
      m = s32[] parameter(3)
      more = pred[] compare(v, w), direction=GT
      nan = pred[] compare(v, v), direction=NE
      first = pred[] or(more, nan)
      value = f32[] select(first, v, w)
      same = pred[] compare(v, w), direction=EQ
      before = pred[] compare(n, m), direction=LT
      tie = pred[] and(same, before)
      either = pred[] or(first, tie)
      index = s32[] select(either, n, m)
      ROOT t = (f32[], s32[]) tuple(value, index)
    }

    c = f32[] constant(3)
    x = f32[4,8] broadcast(c), dimensions={}
    it = s32[4,8] iota(), iota_dimension=1
    low = f32[] constant(-inf)
    zero = s32[] constant(0)
    ROOT r = (f32[4], s32[4]) reduce(x, it, low, zero), dimensions={1}, to_apply=argmax
    ->
    p = f32[4] broadcast(c), dimensions={}
    q = s32[4] broadcast(zero), dimensions={}
    ROOT r = (f32[4], s32[4]) tuple(p, q)
    """
    if arg_direction(i) is None:
        return None
    x, it = i.operands[:2]
    value = splat_value(x)
    if value is None or value != value or x.opcode != "broadcast" or it.attrs["iota_dimension"] not in i.dimensions:
        return None
    first, second = i.shape.tuple_shapes or (i.shape, i.shape)
    zero = i.operands[3]
    return b.add("tuple", [b.splat(first, value), b.broadcast(zero, second.dims, ())], i.shape)


@rule("reduce", operand="constant")
def largest_of_arg(i: Instruction, b: Builder) -> Instruction | None:
    """max(x) == the value that an argmax(x) over the same dimensions finds too, and min and argmin alike

    argmax {
      v = f32[] parameter(0)
      n = s32[] parameter(1)
      w = f32[] parameter(2)
      m = s32[] parameter(3)
      more = pred[] compare(v, w), direction=GT
      nan = pred[] compare(v, v), direction=NE
      first = pred[] or(more, nan)
      value = f32[] select(first, v, w)
      same = pred[] compare(v, w), direction=EQ
      before = pred[] compare(n, m), direction=LT
      tie = pred[] and(same, before)
      either = pred[] or(first, tie)
      index = s32[] select(either, n, m)
      ROOT t = (f32[], s32[]) tuple(value, index)
    }

    largest {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT m = f32[] maximum(a, b)
    }

    it = s32[4,8] iota(), iota_dimension=1
    low = f32[] constant(-inf)
    zero = s32[] constant(0)
    both = (f32[4], s32[4]) reduce(f32[4,8] x, it, low, zero), dimensions={1}, to_apply=argmax
    n = s32[4] get-tuple-element(both), index=1
    k = f32[4] convert(n)
    v = f32[4] reduce(x, low), dimensions={1}, to_apply=largest
    ROOT r = f32[4] add(v, k)
    ->
    w = f32[4] get-tuple-element(both), index=0
    ROOT r = f32[4] add(w, k)
    """
    if len(i.operands) != 2:
        return None
    op = combiner(i.to_apply)
    x, init = i.operands
    if op not in facts.having(Trait.EXTREMUM) or not is_neutral(op, init) or len(x.users) > _FEW_USERS:
        return None
    for user in x.users:
        if user.opcode != "reduce" or user.operands[0] is not x or user.dimensions != i.dimensions:
            continue
        if arg_direction(user) == ("GT" if op == "maximum" else "LT"):
            return b.add("get-tuple-element", [user], i.shape, index=0)
    return None


def arg_direction(i: Instruction) -> str | None:
    """GT where `i` finds the first of the largest values and its place, LT for the smallest, else None."""
    if len(i.operands) != 4 or i.operands[1].opcode != "iota" or not is_splat(i.operands[3], 0):
        return None
    direction = _arg_comparison(i.to_apply)
    op = {"GT": "maximum", "LT": "minimum"}.get(direction or "")
    return direction if op is not None and is_neutral(op, i.operands[2]) else None


def _arg_comparison(c: Computation) -> str | None:
    """The comparison by which `c` chooses one of two (value, index) pairs; None for another function."""
    if len(c) > 14 or c.root.opcode != "tuple" or len(c.root.operands) != 2 or len(c.parameters) != 4:
        return None
    v, n, w, m = c.parameters
    value, index = c.root.operands
    if value.opcode != "select" or index.opcode != "select":
        return None
    if value.operands[1:] != [v, w] or index.operands[1:] != [n, m]:
        return None
    first, either = value.operands[0], index.operands[0]
    directions = [d for d in ("GT", "LT") if _is_ahead(first, v, w, d)]
    if len(directions) != 1:
        return None
    tie_ok = _is_or(either, lambda o: o is first, lambda o: _is_tie(o, v, w, n, m))
    return directions[0] if tie_ok else None


def _compares(i: Instruction, x: Instruction, y: Instruction, direction: str) -> bool:
    plain = i.opcode == "compare" and i.attrs.get("type") != "TOTALORDER"
    return plain and i.operands == [x, y] and i.attrs["direction"] == direction


def _is_ahead(i: Instruction, v: Instruction, w: Instruction, direction: str) -> bool:
    """Whether `i` asks if v comes before w; a NaN does. Integers are compared and no more."""
    if v.shape.element_type.is_integer and _compares(i, v, w, direction):
        return True
    return _is_or(i, lambda o: _compares(o, v, w, direction), _is_nan_test(v))


def _is_nan_test(v: Instruction) -> Test:
    return lambda o: _compares(o, v, v, "NE")


def _is_or(i: Instruction, one: Test, other: Test) -> bool:
    if i.opcode != "or":
        return False
    p, q = i.operands
    return (one(p) and other(q)) or (one(q) and other(p))


def _is_tie(i: Instruction, v: Instruction, w: Instruction, n: Instruction, m: Instruction) -> bool:
    if i.opcode != "and":
        return False
    p, q = i.operands
    return any(_compares(a, v, w, "EQ") and _compares(c, n, m, "LT") for a, c in ((p, q), (q, p)))
