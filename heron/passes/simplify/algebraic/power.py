"""Powers, roots, exponentials, signs, rounding."""

from __future__ import annotations

from heron.hlo.instruction import Instruction
from heron.passes.building import is_splat, splat_value
from heron.passes.simplify.algebraic.rules import KNOWN, Builder, rule

LAYOUTS = "kept"


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
        case [Instruction(opcode="negate", operands=[x])] if not i.shape.element_type.is_unsigned:
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
