"""Quotients and remainders."""

from __future__ import annotations

import numpy as np

from heron.hlo.instruction import Instruction
from heron.passes.building import is_splat, splat_value
from heron.passes.simplify.algebraic.rules import KNOWN, Builder, rule

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
