"""Powers, roots, exponentials, signs, rounding."""

from __future__ import annotations

from heron.analysis.values.non_negative import never_negative
from heron.analysis.values.splat import is_splat, splat_value
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.types import PRED
from heron.passes.rewriting.rules import KNOWN, Builder, rule

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
    """x^3 == x * x * x up to rounding; XLA does it by default

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


@rule("abs")
def abs_of_never_negative(i: Instruction, b: Builder) -> Instruction | None:
    """|x| == x where x is never negative

    e = f32[] exponential(f32[] x)
    ROOT r = f32[] abs(e)
    ->
    ROOT r = f32[] exponential(x)
    """
    return i.operands[0] if never_negative(i.operands[0]) else None


@rule("power", operand=KNOWN, math="reassociating")
def power_half(i: Instruction, b: Builder) -> Instruction | None:
    """x^0.5 == sqrt(x) for x >= 0, up to rounding; XLA does it by default

    half = f32[] constant(0.5)
    a = f32[] abs(f32[] x)
    ROOT r = f32[] power(a, half)
    ->
    ROOT r = f32[] sqrt(a)
    """
    x, exponent = i.operands
    if not i.shape.element_type.is_float or not is_splat(exponent, 0.5) or not never_negative(x):
        return None
    return b.add("sqrt", [x], i.shape)


@rule("power", operand="exponential", math="finite-only")
def power_of_exponential(i: Instruction, b: Builder) -> Instruction | None:
    """exp(x)^y == exp(x * y) up to rounding, where nothing overflows

    e = f32[] exponential(f32[] x)
    ROOT r = f32[] power(e, f32[] y)
    ->
    m = f32[] multiply(x, y)
    ROOT r = f32[] exponential(m)
    """
    match i.operands:
        case [Instruction(opcode="exponential", operands=[x]), y] if not i.shape.element_type.is_complex:
            return b.add("exponential", [b.add("multiply", [x, y], i.shape)], i.shape)
    return None


@rule("exponential", operand=KNOWN)
def exponential_of_zero(i: Instruction, b: Builder) -> Instruction | None:
    """exp(0) == 1

    zero = f32[] constant(0)
    zeros = f32[3] broadcast(zero), dimensions={}
    ROOT r = f32[3] exponential(zeros)
    ->
    one = f32[] constant(1)
    ROOT r = f32[3] broadcast(one), dimensions={}
    """
    return b.splat(i.shape, 1) if is_splat(i.operands[0], 0) else None


@rule("log", operand="exponential", math="finite-only")
def log_of_exponential(i: Instruction, b: Builder) -> Instruction | None:
    """log(exp(x)) == x up to rounding, where exp(x) neither overflows nor underflows

    e = f32[] exponential(f32[] x)
    ROOT r = f32[] log(e)
    ->
    ROOT x
    """
    match i.operands:
        case [Instruction(opcode="exponential", operands=[x])] if not i.shape.element_type.is_complex:
            return x
    return None


@rule("log", operand="power", math="finite-only")
def log_of_power(i: Instruction, b: Builder) -> Instruction | None:
    """log(x^y) == y == 0 ? 0 : log(|x|) * y up to rounding, where x^y is no NaN; XLA does it by default

    a = f32[] abs(f32[] x)
    p = f32[] power(a, f32[] y)
    ROOT r = f32[] log(p)
    ->
    c = f32[] abs(a)
    l = f32[] log(c)
    m = f32[] multiply(l, y)
    zero = f32[] constant(0)
    none = pred[] compare(y, zero), direction=EQ
    zero2 = f32[] constant(0)
    ROOT r = f32[] select(none, zero2, m)
    """
    match i.operands:
        case [Instruction(opcode="power", operands=[x, y])] if i.shape.element_type.is_float:
            scaled = b.add("multiply", [b.add("log", [b.add("abs", [x], i.shape)], i.shape), y], i.shape)
            none = b.add("compare", [y, b.splat(y.shape, 0)], y.shape.with_type(PRED), direction="EQ")
            return b.add("select", [none, b.splat(i.shape, 0), scaled], i.shape)
    return None


@rule("log", operand=("sqrt", "rsqrt"), math="reassociating")
def log_of_root(i: Instruction, b: Builder) -> Instruction | None:
    """log(sqrt(x)) == log(x) * 0.5, log(rsqrt(x)) == log(x) * -0.5 up to rounding; XLA does it by default

    s = f32[] sqrt(f32[] x)
    ROOT r = f32[] log(s)
    ->
    l = f32[] log(x)
    half = f32[] constant(0.5)
    ROOT r = f32[] multiply(l, half)
    """
    root = i.operands[0]
    if not i.shape.element_type.is_float:
        return None
    half = b.splat(i.shape, 0.5 if root.opcode == "sqrt" else -0.5)
    return b.add("multiply", [b.add("log", [root.operands[0]], i.shape), half], i.shape)


@rule("sqrt", operand="multiply", math="finite-only")
def sqrt_of_square(i: Instruction, b: Builder) -> Instruction | None:
    """sqrt(x * x) == |x| where x * x neither overflows nor underflows

    m = f32[] multiply(f32[] x, x)
    ROOT r = f32[] sqrt(m)
    ->
    ROOT r = f32[] abs(x)
    """
    match i.operands:
        case [Instruction(opcode="multiply", operands=[x, y])] if x is y and not i.shape.element_type.is_complex:
            return b.add("abs", [x], i.shape)
    return None


@rule("rsqrt", operand=("power", "divide"), math="reassociating")
def rsqrt_of_inverse(i: Instruction, b: Builder) -> Instruction | None:
    """rsqrt(1 / x) == sqrt(x), rsqrt(x^-2) == x for x >= 0, up to rounding; XLA does it by default

    a = f32[] abs(f32[] x)
    one = f32[] constant(1)
    d = f32[] divide(one, a)
    ROOT r = f32[] rsqrt(d)
    ->
    ROOT r = f32[] sqrt(a)
    """
    match i.operands:
        case [Instruction(opcode="divide", operands=[one, x])] if is_splat(one, 1) and never_negative(x):
            return b.add("sqrt", [x], i.shape)
        case [Instruction(opcode="power", operands=[x, y])] if is_splat(y, -2) and never_negative(x):
            return x
    return None
