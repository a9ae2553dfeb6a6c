"""Quotients and remainders."""

from __future__ import annotations

import numpy as np

from heron.analysis.values.splat import is_splat, splat_value
from heron.analysis.values.upper_bound import upper_bound
from heron.hlo.ir.instruction import Instruction
from heron.passes.rewriting.rules import KNOWN, Builder, rule

LAYOUTS = "kept"


@rule("divide", operand=KNOWN)
def divide_by_one(i: Instruction, b: Builder) -> Instruction | None:
    """x / 1 == x

    one = f32[] constant(1)
    ROOT r = f32[] divide(f32[] x, one)
    ->
    ROOT x
    """
    match i.operands:
        case [x, one] if is_splat(one, 1):
            return x
    return None


@rule("divide", operand=KNOWN)
def divide_by_power_of_two(i: Instruction, b: Builder) -> Instruction | None:
    """x / 2^n == x * 2^-n

    four = f32[] constant(4)
    ROOT r = f32[] divide(f32[] x, four)
    ->
    quarter = f32[] constant(0.25)
    ROOT r = f32[] multiply(x, quarter)
    """
    if not i.shape.element_type.is_float or i.shape.element_type.bits < 16:
        return None
    value = splat_value(i.operands[1])
    if value is None or not np.isfinite(float(value)) or abs(np.frexp(float(value))[0]) != 0.5:
        return None
    # an inverse outside ±100 powers of two might be subnormal in f32, where flushing would make a difference
    if not 2.0**-12 <= abs(float(value)) <= 2.0**12 and i.shape.element_type.bits < 32:
        return None
    if not 2.0**-100 <= abs(float(value)) <= 2.0**100:
        return None
    return b.add("multiply", [i.operands[0], b.splat(i.shape, 1.0 / float(value))], i.shape)


@rule("divide", operand=KNOWN, math="reassociating")
def divide_by_constant(i: Instruction, b: Builder) -> Instruction | None:
    """x / c == x * (1 / c) up to rounding; XLA does it by default

    c = f32[] constant(3)
    ROOT r = f32[] divide(f32[] x, c)
    ->
    third = f32[] constant(0.333333343)
    ROOT r = f32[] multiply(x, third)
    """
    if not i.shape.element_type.is_float:
        return None
    value = splat_value(i.operands[1])
    if value is None or not 1e-30 < abs(float(value)) < 1e30:
        return None
    return b.add("multiply", [i.operands[0], b.splat(i.shape, 1.0 / float(value))], i.shape)


@rule("divide", operand="sqrt", math="reassociating")
def divide_by_sqrt(i: Instruction, b: Builder) -> Instruction | None:
    """x / sqrt(y) == x * rsqrt(y) up to rounding; XLA does it by default

    s = f32[] sqrt(f32[] y)
    ROOT r = f32[] divide(f32[] x, s)
    ->
    s = f32[] rsqrt(y)
    ROOT r = f32[] multiply(x, s)
    """
    match i.operands:
        case [x, Instruction(opcode="sqrt", operands=[y])]:
            return b.add("multiply", [x, b.add("rsqrt", [y], i.shape)], i.shape)
    return None


@rule("divide", operand=KNOWN)
def divide_unsigned_by_power_of_two(i: Instruction, b: Builder) -> Instruction | None:
    """x / 2^n == x >> n for unsigned x

    four = u32[] constant(4)
    ROOT r = u32[] divide(u32[] x, four)
    ->
    two = u32[] constant(2)
    ROOT r = u32[] shift-right-logical(x, two)
    """
    n = _power_of_two(i)
    return None if n is None else b.add("shift-right-logical", [i.operands[0], b.splat(i.shape, n)], i.shape)


@rule("remainder", operand=KNOWN)
def remainder_unsigned_by_power_of_two(i: Instruction, b: Builder) -> Instruction | None:
    """x % 2^n == x & (2^n - 1) for unsigned x

    four = u32[] constant(4)
    ROOT r = u32[] remainder(u32[] x, four)
    ->
    three = u32[] constant(3)
    ROOT r = u32[] and(x, three)
    """
    n = _power_of_two(i)
    return None if n is None else b.add("and", [i.operands[0], b.splat(i.shape, (1 << n) - 1)], i.shape)


def _power_of_two(i: Instruction) -> int | None:
    """n when the second operand of an unsigned op is 2^n everywhere."""
    if not i.shape.element_type.is_unsigned:
        return None
    value = splat_value(i.operands[1])
    if value is None or int(value) <= 0 or int(value) & (int(value) - 1):
        return None
    return int(value).bit_length() - 1


@rule("divide", operand="rsqrt", math="reassociating")
def divide_by_rsqrt(i: Instruction, b: Builder) -> Instruction | None:
    """x / rsqrt(y) == x * sqrt(y) up to rounding; XLA does it by default

    s = f32[] rsqrt(f32[] y)
    ROOT r = f32[] divide(f32[] x, s)
    ->
    s = f32[] sqrt(y)
    ROOT r = f32[] multiply(x, s)
    """
    match i.operands:
        case [x, Instruction(opcode="rsqrt", operands=[y])]:
            return b.add("multiply", [x, b.add("sqrt", [y], i.shape)], i.shape)
    return None


@rule("divide", operand="exponential", math="finite-only")
def divide_by_exponential(i: Instruction, b: Builder) -> Instruction | None:
    """exp(x) / exp(y) == exp(x - y), x / exp(y) == x * exp(-y) up to rounding, where nothing overflows

    e = f32[] exponential(f32[] y)
    ROOT r = f32[] divide(f32[] x, e)
    ->
    n = f32[] negate(y)
    e = f32[] exponential(n)
    ROOT r = f32[] multiply(x, e)
    """
    match i.operands:
        case [Instruction(opcode="exponential", operands=[x]), Instruction(opcode="exponential", operands=[y])]:
            return b.add("exponential", [b.add("subtract", [x, y], i.shape)], i.shape)
        case [x, Instruction(opcode="exponential", operands=[y])]:
            inverse = b.add("exponential", [b.add("negate", [y], i.shape)], i.shape)
            return b.add("multiply", [x, inverse], i.shape)
    return None


@rule("divide", operand="power", math="reassociating")
def divide_by_power(i: Instruction, b: Builder) -> Instruction | None:
    """x / y^z == x * y^-z up to rounding, for floats; XLA does it by default

    p = f32[] power(f32[] y, f32[] z)
    ROOT r = f32[] divide(f32[] x, p)
    ->
    n = f32[] negate(z)
    q = f32[] power(y, n)
    ROOT r = f32[] multiply(x, q)
    """
    match i.operands:
        case [x, Instruction(opcode="power", operands=[y, z])] if i.shape.element_type.is_float:
            return b.add("multiply", [x, b.add("power", [y, b.add("negate", [z], z.shape)], i.shape)], i.shape)
    return None


@rule("divide", operand="divide", math="reassociating")
def divide_of_divide(i: Instruction, b: Builder) -> Instruction | None:
    """(x / y) / (z / w) == (x * w) / (y * z) up to rounding; likewise (x / y) / z and x / (y / z)

    XLA does it by default.

    p = f32[] divide(f32[] x, f32[] y)
    q = f32[] divide(f32[] z, f32[] w)
    ROOT r = f32[] divide(p, q)
    ->
    xw = f32[] multiply(x, w)
    yz = f32[] multiply(y, z)
    ROOT r = f32[] divide(xw, yz)
    """
    if not i.shape.element_type.is_float:
        return None
    match i.operands:
        case [Instruction(opcode="divide", operands=[x, y]), Instruction(opcode="divide", operands=[z, w])]:
            above, below = b.add("multiply", [x, w], i.shape), b.add("multiply", [y, z], i.shape)
        case [Instruction(opcode="divide", operands=[x, y]), z]:
            above, below = x, b.add("multiply", [y, z], i.shape)
        case [x, Instruction(opcode="divide", operands=[y, z])]:
            above, below = b.add("multiply", [x, z], i.shape), y
        case _:
            return None
    return b.add("divide", [above, below], i.shape)


@rule("divide", operand="broadcast", math="reassociating", layouts="free")
def divide_by_broadcast(i: Instruction, b: Builder) -> Instruction | None:
    """x / broadcast(y) == x * broadcast(1 / y) up to rounding; XLA does it by default on CPUs

    ys = f32[2,3] broadcast(f32[3] y), dimensions={1}
    ROOT r = f32[2,3] divide(f32[2,3] x, ys)
    ->
    one = f32[] constant(1)
    ones = f32[3] broadcast(one), dimensions={}
    inverse = f32[3] divide(ones, y)
    zs = f32[2,3] broadcast(inverse), dimensions={1}
    ROOT r = f32[2,3] multiply(x, zs)
    """
    x, ys = i.operands
    if not i.shape.element_type.is_float or ys.opcode != "broadcast" or splat_value(ys) is not None:
        return None
    y = ys.operands[0]
    if y.shape.num_elements == i.shape.num_elements or len(ys.users) > 1:
        return None
    inverse = b.add("divide", [b.splat(y.shape, 1), y], y.shape)
    return b.add("multiply", [x, b.broadcast(inverse, i.shape.dims, ys.attrs["dimensions"])], i.shape)


@rule("select", operand="remainder")
def floored_remainder(i: Instruction, b: Builder) -> Instruction | None:
    """x % 2^n < 0 ? x % 2^n + 2^n : x % 2^n == x & (2^n - 1)

    four = s32[] constant(4)
    m = s32[] remainder(s32[] x, four)
    zero = s32[] constant(0)
    negative = pred[] compare(m, zero), direction=LT
    up = s32[] add(m, four)
    ROOT r = s32[] select(negative, up, m)
    ->
    three = s32[] constant(3)
    ROOT r = s32[] and(x, three)
    """
    match i.operands:
        case [
            Instruction(opcode="compare", operands=[tested, zero], attrs={"direction": "LT"}),
            Instruction(opcode="add", operands=[raised, by]),
            Instruction(opcode="remainder", operands=[x, n]) as m,
        ] if tested is m is raised and is_splat(zero, 0) and (shift := _shift(n)) is not None:
            if splat_value(by) == splat_value(n):
                return b.add("and", [x, b.splat(i.shape, (1 << shift) - 1)], i.shape)
    return None


@rule("select", operand="divide")
def floored_quotient(i: Instruction, b: Builder) -> Instruction | None:
    """sign(x) != 1 and x % 2^n != 0 ? x / 2^n - 1 : x / 2^n == x >> n

    four = s32[] constant(4)
    s = s32[] sign(s32[] x)
    one = s32[] constant(1)
    low = pred[] compare(s, one), direction=NE
    m = s32[] remainder(x, four)
    zero = s32[] constant(0)
    rest = pred[] compare(m, zero), direction=NE
    both = pred[] and(low, rest)
    q = s32[] divide(x, four)
    less = s32[] constant(-1)
    down = s32[] add(q, less)
    ROOT r = s32[] select(both, down, q)
    ->
    two = s32[] constant(2)
    ROOT r = s32[] shift-right-arithmetic(x, two)
    """
    match i.operands:
        case [
            Instruction(
                opcode="and",
                operands=[
                    Instruction(opcode="compare", operands=[s, one], attrs={"direction": "NE"}),
                    Instruction(opcode="compare", operands=[m, zero], attrs={"direction": "NE"}),
                ],
            ),
            Instruction(opcode="add", operands=[lowered, by]),
            Instruction(opcode="divide", operands=[x, n]) as q,
        ] if lowered is q and s.opcode == "sign" and s.operands[0] is x and (shift := _shift(n)) is not None:
            if m.opcode != "remainder" or m.operands[0] is not x or splat_value(m.operands[1]) != splat_value(n):
                return None
            if is_splat(one, 1) and is_splat(zero, 0) and is_splat(by, -1):
                return b.add("shift-right-arithmetic", [x, b.splat(i.shape, shift)], i.shape)
    return None


def _shift(x: Instruction) -> int | None:
    """n when all elements of a signed `x` are known to be 2^n."""
    value = splat_value(x) if x.shape.element_type.kind == "signed" else None
    if value is None or int(value) <= 0 or int(value) & (int(value) - 1):
        return None
    return int(value).bit_length() - 1


@rule("remainder", operand="remainder")
def remainder_of_remainder(i: Instruction, b: Builder) -> Instruction | None:
    """(x % y) % y == x % y

    m = s32[] remainder(s32[] x, s32[] y)
    ROOT r = s32[] remainder(m, y)
    ->
    ROOT r = s32[] remainder(x, y)
    """
    m, y = i.operands
    return m if m.opcode == "remainder" and m.operands[1] is y else None


@rule("remainder", operand=KNOWN)
def remainder_of_less(i: Instruction, b: Builder) -> Instruction | None:
    """x % n == x where 0 <= x < n

    it = s32[8] iota(), iota_dimension=0
    n = s32[] constant(8)
    ns = s32[8] broadcast(n), dimensions={}
    ROOT r = s32[8] remainder(it, ns)
    ->
    ROOT r = s32[8] iota(), iota_dimension=0
    """
    x, n = i.operands
    value = splat_value(n) if i.shape.element_type.is_integer else None
    if value is None or int(value) <= 0:
        return None
    bound = upper_bound(x)
    return x if bound is not None and bound < int(value) else None


@rule("remainder", operand=KNOWN)
def remainder_of_sum(i: Instruction, b: Builder) -> Instruction | None:
    """(x + n) % n == x % n where 0 <= x and the sum does not wrap

    it = s32[8] iota(), iota_dimension=0
    n = s32[] constant(5)
    ns = s32[8] broadcast(n), dimensions={}
    sum = s32[8] add(it, ns)
    ROOT r = s32[8] remainder(sum, ns)
    ->
    ROOT r = s32[8] remainder(it, ns)
    """
    total, n = i.operands
    value = splat_value(n) if i.shape.element_type.is_integer else None
    if value is None or int(value) <= 0 or total.opcode != "add" or upper_bound(total) is None:
        return None
    for k, part in enumerate(total.operands):
        if is_splat(part, int(value)):
            return b.add("remainder", [total.operands[1 - k], n], i.shape)
    return None


@rule("divide", operand="convert", math="finite-only")
def divide_truth(i: Instruction, b: Builder) -> Instruction | None:
    """convert(p) / broadcast(v) == convert(p) * broadcast(1 / v) for a truth value p, where 1 / v does not overflow

    XLA does it by default.

    c = f32[4] convert(pred[4] p)
    vs = f32[4] broadcast(f32[] v), dimensions={}
    ROOT r = f32[4] divide(c, vs)
    ->
    one = f32[] constant(1)
    w = f32[] divide(one, v)
    ws = f32[4] broadcast(w), dimensions={}
    ROOT r = f32[4] multiply(c, ws)
    """
    match i.operands:
        case [Instruction(opcode="convert", operands=[p]) as c, Instruction(opcode="broadcast", operands=[v]) as vs]:
            if p.shape.element_type.kind != "pred" or v.shape.rank or splat_value(vs) is not None:
                return None
            if not i.shape.element_type.is_float:
                return None
            inverse = b.add("divide", [b.splat(v.shape, 1), v], v.shape)
            return b.add("multiply", [c, b.add("broadcast", [inverse], i.shape, dimensions=())], i.shape)
    return None
