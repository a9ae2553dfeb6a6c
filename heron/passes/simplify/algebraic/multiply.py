"""Products, and constants of any associative op brought together."""

from __future__ import annotations

from heron.hlo.instruction import Instruction
from heron.passes.building import is_splat, splat_value
from heron.passes.simplify.algebraic.rules import KNOWN, Builder, rule

LAYOUTS = "kept"


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
