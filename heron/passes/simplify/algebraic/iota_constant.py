"""Iotas, and constants that are better written as one."""

from __future__ import annotations

import numpy as np

from heron.analysis.values.splat import splat_value
from heron.hlo.exact import exact_range
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.literal import Literal, scalar
from heron.hlo.ir.types import ElementType
from heron.passes.rewriting.dimensions import common_groups, squeezed
from heron.passes.rewriting.rules import Builder, rule

#: constants longer than this are not looked through
_LONGEST = 1 << 16


@rule("constant")
def constant_iota(i: Instruction, b: Builder) -> Instruction | None:
    """constant({0, n, 2n, ...}) == iota() * n for integers

    ROOT r = s32[4] constant({0, 2, 4, 6})
    ->
    it = s32[4] iota(), iota_dimension=0
    n = s32[] constant(2)
    ns = s32[4] broadcast(n), dimensions={}
    ROOT r = s32[4] multiply(it, ns)
    """
    if not i.shape.is_array or i.shape.rank != 1 or not i.shape.element_type.is_integer:
        return None
    size, t = i.shape.dims[0], i.shape.element_type
    values = i.attrs["literal"].array
    if not 2 <= size <= _LONGEST or size > 1 << t.bits - t.is_signed or int(values[0]) != 0:
        return None
    step = int(values[1])
    if step <= 0 or int(values[-1]) != step * (size - 1):
        return None
    if not np.array_equal(values.astype(np.int64), np.arange(size, dtype=np.int64) * step):
        return None
    it = b.add("iota", [], i.shape.with_default_layout(), iota_dimension=0)
    return it if step == 1 else b.add("multiply", [it, b.splat(i.shape, step)], i.shape)


@rule("constant")
def constant_tuple(i: Instruction, b: Builder) -> Instruction | None:
    """constant((c, d)) == tuple(constant(c), constant(d))

    ROOT r = (s32[], f32[]) constant((1, 2))
    ->
    c = s32[] constant(1)
    d = f32[] constant(2)
    ROOT r = (s32[], f32[]) tuple(c, d)
    """
    return _spread(i.attrs["literal"], b) if i.shape.is_tuple else None


def _spread(literal: Literal, b: Builder) -> Instruction:
    if not literal.shape.is_tuple:
        return b.constant(literal)
    return b.add("tuple", [_spread(part, b) for part in literal.parts], literal.shape)


@rule("reshape", operand="iota")
def reshape_of_iota_as_digits(i: Instruction, b: Builder) -> Instruction | None:
    """reshape(iota()) == iotas of the dimensions its own falls apart into, as digits of one number

    it = s32[6] iota(), iota_dimension=0
    ROOT r = s32[2,3] reshape(it)
    ->
    low = s32[2,3] iota(), iota_dimension=1
    high = s32[2,3] iota(), iota_dimension=0
    n = s32[] constant(3)
    ns = s32[2,3] broadcast(n), dimensions={}
    m = s32[2,3] multiply(high, ns)
    ROOT r = s32[2,3] add(low, m)
    """
    it = i.operands[0]
    if it.opcode != "iota" or not it.shape.element_type.is_integer or it.shape.num_elements == 0:
        return None
    along = it.attrs["iota_dimension"]
    digits = next((new for old, new in common_groups(it.shape.dims, i.shape.dims) if old == [along]), None)
    if not digits or it.shape.dims[along] >= 1 << it.shape.element_type.bits - 1:
        return None
    total: Instruction | None = None
    weight = 1
    for d in reversed(digits):
        digit = b.add("iota", [], i.shape.with_default_layout(), iota_dimension=d)
        if total is not None:
            digit = b.add("multiply", [digit, b.splat(i.shape, weight)], i.shape)
            total = b.add("add", [total, digit], i.shape)
        else:
            total = digit
        weight *= i.shape.dims[d]
    return total


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


@rule("iota")
def iota_of_one(i: Instruction, b: Builder) -> Instruction | None:
    """iota() along a dimension of size 1 == 0

    ROOT r = s32[1,4] iota(), iota_dimension=0
    ->
    zero = s32[] constant(0)
    ROOT r = s32[1,4] broadcast(zero), dimensions={}
    """
    return b.splat(i.shape, 0) if i.shape.dims[i.attrs["iota_dimension"]] == 1 else None


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


@rule("broadcast", operand="iota")
def broadcast_of_iota(i: Instruction, b: Builder) -> Instruction | None:
    """broadcast(iota()) == iota()

    it = s32[8] iota(), iota_dimension=0
    ROOT r = s32[2,8] broadcast(it), dimensions={1}
    ->
    ROOT r = s32[2,8] iota(), iota_dimension=1
    """
    match i.operands:
        case [Instruction(opcode="iota", attrs={"iota_dimension": d})]:
            return b.add("iota", [], i.shape.with_default_layout(), iota_dimension=i.attrs["dimensions"][d])
    return None


@rule("constant")
def constant_splat(i: Instruction, b: Builder) -> Instruction | None:
    """constant({c, c, ...}) == broadcast(constant(c))

    ROOT r = f32[3] constant({2, 2, 2})
    ->
    c = f32[] constant(2)
    ROOT r = f32[3] broadcast(c), dimensions={}
    """
    if not i.shape.is_array or i.shape.rank == 0 or i.shape.num_elements < 2:
        return None
    value = splat_value(i)
    if value is None:
        return None
    c = b.constant(scalar(i.shape.element_type, value))
    return b.broadcast(c, i.shape.dims, ())


@rule("reshape", operand="constant")
def reshape_of_scalar_constant(i: Instruction, b: Builder) -> Instruction | None:
    """reshape(constant) == constant, for one element

    c = f32[] constant(2)
    ROOT r = f32[1,1] reshape(c)
    ->
    c = f32[] constant(2)
    ROOT r = f32[1,1] broadcast(c), dimensions={}
    """
    c = i.operands[0]
    if c.opcode != "constant" or c.shape.num_elements != 1:
        return None
    value = b.constant(scalar(c.shape.element_type, c.attrs["literal"].array.reshape(())))
    return b.broadcast(value, i.shape.dims, ())


@rule("convert", operand="iota")
def convert_of_iota(i: Instruction, b: Builder) -> Instruction | None:
    """convert(iota()) == iota() of the other type, where that one holds every index

    it = s32[8] iota(), iota_dimension=0
    ROOT r = f32[8] convert(it)
    ->
    ROOT r = f32[8] iota(), iota_dimension=0
    """
    x = i.operands[0]
    if x.opcode != "iota" or i.shape.element_type.kind == "pred" or i.shape.element_type.bits < 8:
        return None
    size = x.shape.dims[x.attrs["iota_dimension"]]
    if size > min(_last_exact(x.shape.element_type), _last_exact(i.shape.element_type)):
        return None
    return b.add("iota", [], i.shape, iota_dimension=x.attrs["iota_dimension"])


def _last_exact(t: ElementType) -> int:
    """The number of integers from 0 on that the type holds exactly."""
    if t.is_integer:
        return 1 << (t.bits - t.is_signed)
    bits, largest = exact_range(t.component)
    return int(min(2.0**bits, largest))
