"""Reverses."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.passes.rewriting.dimensions import squeezed
from heron.passes.rewriting.rules import Builder, rule


@rule("reverse")
def reverse_size_one(i: Instruction, b: Builder) -> Instruction | None:
    """reverse(x) along dimensions of size 1 == x

    ROOT r = f32[1,4] reverse(f32[1,4] x), dimensions={0}
    ->
    ROOT x
    """
    x = i.operands[0]
    left = tuple(d for d in i.attrs["dimensions"] if x.shape.dims[d] > 1)
    if len(left) == len(i.attrs["dimensions"]):
        return None
    return b.add("reverse", [x], i.shape, dimensions=left) if left else x


@rule("reverse", operand="reverse")
def reverse_of_reverse(i: Instruction, b: Builder) -> Instruction | None:
    """reverse(reverse(x)) == x along the same dimensions

    a = f32[3,4] reverse(f32[3,4] x), dimensions={0,1}
    ROOT r = f32[3,4] reverse(a), dimensions={1}
    ->
    ROOT r = f32[3,4] reverse(x), dimensions={0}
    """
    match i.operands:
        case [Instruction(opcode="reverse", operands=[x], attrs={"dimensions": inner})]:
            left = tuple(sorted(set(inner) ^ set(i.attrs["dimensions"])))
            return b.add("reverse", [x], i.shape, dimensions=left) if left else x
    return None


@rule("reverse", operand="broadcast")
def reverse_of_broadcast(i: Instruction, b: Builder) -> Instruction | None:
    """reverse(broadcast(x)) == broadcast(reverse(x)) along the dimensions that x has

    y = f32[3,8] broadcast(f32[8] x), dimensions={1}
    ROOT r = f32[3,8] reverse(y), dimensions={0,1}
    ->
    s = f32[8] reverse(x), dimensions={0}
    ROOT r = f32[3,8] broadcast(s), dimensions={1}
    """
    match i.operands:
        case [Instruction(opcode="broadcast", operands=[x], attrs={"dimensions": mapped})]:
            within = tuple([n for n, d in enumerate(mapped) if d in i.attrs["dimensions"]])
            turned = b.add("reverse", [x], x.shape, dimensions=within) if within else x
            return b.broadcast(turned, i.shape.dims, mapped)
    return None


@rule("reverse", operand="reshape")
def reverse_of_squeezed(i: Instruction, b: Builder) -> Instruction | None:
    """reverse(reshape(x)) == reshape(reverse(x)) where the reshape adds or drops dimensions of size 1

    y = f32[8,1] reshape(f32[8] x)
    ROOT r = f32[8,1] reverse(y), dimensions={0}
    ->
    s = f32[8] reverse(x), dimensions={0}
    ROOT r = f32[8,1] reshape(s)
    """
    y = i.operands[0]
    if y.opcode != "reshape" or squeezed(y.operands[0].shape.dims) != squeezed(y.shape.dims):
        return None
    x = y.operands[0]
    outer = [d for d, size in enumerate(y.shape.dims) if size != 1]
    inner = [d for d, size in enumerate(x.shape.dims) if size != 1]
    turned = tuple([inner[outer.index(d)] for d in i.attrs["dimensions"] if y.shape.dims[d] != 1])
    return b.reshape(b.add("reverse", [x], x.shape, dimensions=turned) if turned else x, i.shape.dims)


@rule("reverse")
def reverse_of_elementwise(i: Instruction, b: Builder) -> Instruction | None:
    """reverse(f(x, broadcast(v))) == f(reverse(x), broadcast(v)) for a scalar v, where f(..) has no other use

    vs = f32[8] broadcast(f32[] v), dimensions={}
    y = f32[8] add(f32[8] x, vs)
    ROOT r = f32[8] reverse(y), dimensions={0}
    ->
    s = f32[8] reverse(x), dimensions={0}
    ROOT r = f32[8] add(s, vs)
    """
    y = i.operands[0]
    if not y.op.is_elementwise or len(y.operands) != 2 or y.has_side_effect or len(y.users) > 1:
        return None
    for n, vs in enumerate(y.operands):
        if vs.opcode == "broadcast" and not vs.operands[0].shape.rank:
            x = y.operands[1 - n]
            turned = b.add("reverse", [x], x.shape, dimensions=i.attrs["dimensions"])
            return b.like(y, [vs, turned] if n == 0 else [turned, vs], i.shape)
    return None
