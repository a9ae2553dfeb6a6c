"""Sums, differences, products, quotients, powers, signs."""

from __future__ import annotations

import numpy as np

from heron.hlo.instruction import Instruction
from heron.passes.building import is_splat, splat_value
from heron.passes.simplify.algebraic.rules import KNOWN, Builder, rule


@rule("add", operand=KNOWN)
def add_negative_zero(i: Instruction, b: Builder) -> Instruction | None:
    """x + -0 == x

    zero = f32[] constant(-0)
    ROOT r = f32[] add(zero, f32[] x)
    ->
    ROOT x
    """
    match i.operands:
        case [x, zero] if is_splat(zero, -0.0):
            return x
        case [zero, x] if is_splat(zero, -0.0):
            return x
    return None


@rule("add", operand=KNOWN)
def add_zero_integer(i: Instruction, b: Builder) -> Instruction | None:
    """x + 0 == x for integers

    zero = s32[] constant(0)
    ROOT r = s32[] add(s32[] x, zero)
    ->
    ROOT x
    """
    if i.shape.element_type.is_integer:
        match i.operands:
            case [x, zero] if is_splat(zero, 0):
                return x
            case [zero, x] if is_splat(zero, 0):
                return x
    return None


@rule("add", operand=KNOWN, math="reassociating")
def add_zero(i: Instruction, b: Builder) -> Instruction | None:
    """x + 0 == x but for the sign of -0 + 0

    zero = f32[] constant(0)
    ROOT r = f32[] add(f32[] x, zero)
    ->
    ROOT x
    """
    match i.operands:
        case [x, zero] if is_splat(zero, 0):
            return x
        case [zero, x] if is_splat(zero, 0):
            return x
    return None


@rule("add", operand="negate")
def add_negated(i: Instruction, b: Builder) -> Instruction | None:
    """x + -y == x - y

    n = f32[] negate(f32[] y)
    ROOT r = f32[] add(f32[] x, n)
    ->
    ROOT r = f32[] subtract(x, y)
    """
    match i.operands:
        case [x, Instruction(opcode="negate", operands=[y])]:
            return b.add("subtract", [x, y], i.shape)
        case [Instruction(opcode="negate", operands=[y]), x]:
            return b.add("subtract", [x, y], i.shape)
    return None


@rule("subtract", operand=KNOWN)
def subtract_zero(i: Instruction, b: Builder) -> Instruction | None:
    """x - 0 == x

    zero = f32[] constant(0)
    ROOT r = f32[] subtract(f32[] x, zero)
    ->
    ROOT x
    """
    match i.operands:
        case [x, zero] if is_splat(zero, 0.0):
            return x
    return None


@rule("subtract", operand="negate")
def subtract_negated(i: Instruction, b: Builder) -> Instruction | None:
    """x - -y == x + y

    n = f32[] negate(f32[] y)
    ROOT r = f32[] subtract(f32[] x, n)
    ->
    ROOT r = f32[] add(x, y)
    """
    match i.operands:
        case [x, Instruction(opcode="negate", operands=[y])]:
            return b.add("add", [x, y], i.shape)
    return None


@rule("subtract")
def subtract_self_integer(i: Instruction, b: Builder) -> Instruction | None:
    """x - x == 0 for integers

    ROOT r = s32[] subtract(s32[] x, x)
    ->
    ROOT r = s32[] constant(0)
    """
    x, y = i.operands
    return b.splat(i.shape, 0) if x is y and i.shape.element_type.is_integer else None


@rule("subtract", math="finite-only")
def subtract_self(i: Instruction, b: Builder) -> Instruction | None:
    """x - x == 0 for finite x

    ROOT r = f32[] subtract(f32[] x, x)
    ->
    ROOT r = f32[] constant(0)
    """
    x, y = i.operands
    return b.splat(i.shape, 0) if x is y else None


@rule("multiply", operand=KNOWN)
def multiply_one(i: Instruction, b: Builder) -> Instruction | None:
    """x * 1 == x

    one = f32[] constant(1)
    ROOT r = f32[] multiply(one, f32[] x)
    ->
    ROOT x
    """
    match i.operands:
        case [x, one] if is_splat(one, 1):
            return x
        case [one, x] if is_splat(one, 1):
            return x
    return None


@rule("multiply", operand=KNOWN)
def multiply_minus_one(i: Instruction, b: Builder) -> Instruction | None:
    """x * -1 == -x

    m = f32[] constant(-1)
    ROOT r = f32[] multiply(f32[] x, m)
    ->
    ROOT r = f32[] negate(x)
    """
    if i.shape.element_type.is_unsigned or i.shape.element_type.is_complex:
        return None
    match i.operands:
        case [x, m] if is_splat(m, -1):
            return b.add("negate", [x], i.shape)
        case [m, x] if is_splat(m, -1):
            return b.add("negate", [x], i.shape)
    return None


@rule("multiply", operand=KNOWN)
def multiply_zero_integer(i: Instruction, b: Builder) -> Instruction | None:
    """x * 0 == 0 for integers

    zero = s32[] constant(0)
    ROOT r = s32[] multiply(s32[] x, zero)
    ->
    ROOT zero
    """
    if i.shape.element_type.is_integer:
        for zero in i.operands:
            if is_splat(zero, 0):
                return zero
    return None


@rule("multiply", operand=KNOWN, math="finite-only")
def multiply_zero(i: Instruction, b: Builder) -> Instruction | None:
    """x * 0 == 0 for finite x, but for the zero's sign

    zero = f32[] constant(0)
    ROOT r = f32[] multiply(f32[] x, zero)
    ->
    ROOT zero
    """
    for zero in i.operands:
        if is_splat(zero, 0):
            return zero
    return None


@rule("multiply", operand="negate")
def multiply_negated_twice(i: Instruction, b: Builder) -> Instruction | None:
    """-x * -y == x * y

    m = f32[] negate(f32[] x)
    n = f32[] negate(f32[] y)
    ROOT r = f32[] multiply(m, n)
    ->
    ROOT r = f32[] multiply(x, y)
    """
    match i.operands:
        case [Instruction(opcode="negate", operands=[x]), Instruction(opcode="negate", operands=[y])]:
            return b.add("multiply", [x, y], i.shape)
    return None


@rule("add", "multiply", "and", "or", "maximum", "minimum", operand=KNOWN)
def combine_constants(i: Instruction, b: Builder) -> Instruction | None:
    """(x op c) op d == x op (c op d) for integers

    c = s32[] constant(2)
    d = s32[] constant(3)
    xc = s32[] add(s32[] x, c)
    ROOT r = s32[] add(xc, d)
    ->
    cd = s32[] add(c, d)
    ROOT r = s32[] add(x, cd)
    """
    if not (i.shape.element_type.is_integer or i.shape.element_type.kind == "pred"):
        return None
    return _combine(i, b)


@rule("add", "multiply", operand=KNOWN, math="reassociating")
def combine_float_constants(i: Instruction, b: Builder) -> Instruction | None:
    """(x op c) op d == x op (c op d) up to rounding

    c = f32[] constant(2)
    d = f32[] constant(3)
    xc = f32[] multiply(f32[] x, c)
    ROOT r = f32[] multiply(xc, d)
    ->
    cd = f32[] multiply(c, d)
    ROOT r = f32[] multiply(x, cd)
    """
    return _combine(i, b)


def _combine(i: Instruction, b: Builder) -> Instruction | None:
    inner, d = i.operands
    if splat_value(d) is None:
        inner, d = d, inner
    if inner.opcode != i.opcode or splat_value(d) is None:
        return None
    x, c = inner.operands
    if splat_value(c) is None:
        x, c = c, x
    if splat_value(c) is None or splat_value(x) is not None:
        return None
    return b.add(i.opcode, [x, b.add(i.opcode, [c, d], i.shape)], i.shape)


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
    """x / c == x * (1 / c) up to rounding

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
    """x / sqrt(y) == x * rsqrt(y) up to rounding

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


@rule("negate", operand="negate")
def negate_negate(i: Instruction, b: Builder) -> Instruction | None:
    """-(-x) == x

    n = f32[] negate(f32[] x)
    ROOT r = f32[] negate(n)
    ->
    ROOT x
    """
    match i.operands:
        case [Instruction(opcode="negate", operands=[x])]:
            return x
    return None


@rule("abs")
def abs_of_sign(i: Instruction, b: Builder) -> Instruction | None:
    """|-x| == |x|, ||x|| == |x|

    n = f32[] negate(f32[] x)
    ROOT r = f32[] abs(n)
    ->
    ROOT r = f32[] abs(x)
    """
    match i.operands:
        case [Instruction(opcode="negate", operands=[x])]:
            return b.add("abs", [x], i.shape)
        case [Instruction(opcode="abs") as x]:
            return x
    return None


@rule("floor", "ceil", "round-nearest-afz", "round-nearest-even", "sign")
def idempotent(i: Instruction, b: Builder) -> Instruction | None:
    """floor(floor(x)) == floor(x), and the like

    f = f32[] floor(f32[] x)
    ROOT r = f32[] floor(f)
    ->
    ROOT r = f32[] floor(x)
    """
    x = i.operands[0]
    return x if x.opcode == i.opcode else None


@rule("power", operand=KNOWN)
def power_of_small_constant(i: Instruction, b: Builder) -> Instruction | None:
    """x^0 == 1, x^1 == x, x^2 == x * x, x^-1 == 1 / x

    two = f32[] constant(2)
    ROOT r = f32[] power(f32[] x, two)
    ->
    ROOT r = f32[] multiply(x, x)
    """
    x, exponent = i.operands
    value = splat_value(exponent)
    if value is None or i.shape.element_type.is_complex:
        return None
    if value == 0:
        return b.splat(i.shape, 1)
    if value == 1:
        return x
    if value == 2:
        return b.add("multiply", [x, x], i.shape)
    if value == -1 and i.shape.element_type.is_float:
        return b.add("divide", [b.splat(i.shape, 1), x], i.shape)
    return None


@rule("power", operand=KNOWN, math="reassociating")
def power_three(i: Instruction, b: Builder) -> Instruction | None:
    """x^3 == x * x * x up to rounding

    three = f32[] constant(3)
    ROOT r = f32[] power(f32[] x, three)
    ->
    s = f32[] multiply(x, x)
    ROOT r = f32[] multiply(s, x)
    """
    x, exponent = i.operands
    if not is_splat(exponent, 3) or i.shape.element_type.is_complex:
        return None
    return b.add("multiply", [b.add("multiply", [x, x], i.shape), x], i.shape)


@rule("real", "imag", operand="complex")
def part_of_complex(i: Instruction, b: Builder) -> Instruction | None:
    """real(complex(x, y)) == x, imag(complex(x, y)) == y

    c = c64[] complex(f32[] x, f32[] y)
    ROOT r = f32[] imag(c)
    ->
    ROOT y
    """
    match i.operands:
        case [Instruction(opcode="complex", operands=[x, y])]:
            return x if i.opcode == "real" else y
    return None


@rule("complex", operand="real")
def complex_of_parts(i: Instruction, b: Builder) -> Instruction | None:
    """complex(real(z), imag(z)) == z

    x = f32[] real(c64[] z)
    y = f32[] imag(z)
    ROOT r = c64[] complex(x, y)
    ->
    ROOT z
    """
    match i.operands:
        case [Instruction(opcode="real", operands=[z]), Instruction(opcode="imag", operands=[w])] if z is w:
            return z if z.shape.element_type.is_complex else None
    return None
