"""Products, and constants of any associative op brought together."""

from __future__ import annotations

from heron.analysis.values.non_negative import never_negative
from heron.analysis.values.splat import is_splat, splat_value
from heron.hlo.facts import is_order_free
from heron.hlo.ir.instruction import Instruction
from heron.passes.rewriting.rules import KNOWN, Builder, rule

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


@rule("multiply", operand=KNOWN, floats="finite-only")
def multiply_zero(i: Instruction, b: Builder) -> Instruction | None:
    """x * 0 == 0, for finite floats but for the zero's sign

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


@rule("add", "multiply", "and", "or", "maximum", "minimum", operand=KNOWN, floats="reassociating")
def combine_constants(i: Instruction, b: Builder) -> Instruction | None:
    """(x op c) op d == x op (c op d), for floats up to rounding; XLA does it by default

    c = s32[] constant(2)
    d = s32[] constant(3)
    xc = s32[] add(s32[] x, c)
    ROOT r = s32[] add(xc, d)
    ->
    cd = s32[] add(c, d)
    ROOT r = s32[] add(x, cd)
    """
    is_float = i.shape.element_type.is_float or i.shape.element_type.is_complex
    if is_float and is_order_free(i.opcode):
        return None
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


@rule("multiply", operand="multiply", floats="reassociating")
def gather_constants(i: Instruction, b: Builder) -> Instruction | None:
    """(x * c) * (y * d) == (x * y) * (c * d), for floats up to rounding; XLA does it by default

    c = f32[] constant(2)
    d = f32[] constant(3)
    xc = f32[] multiply(f32[] x, c)
    yd = f32[] multiply(f32[] y, d)
    ROOT r = f32[] multiply(xc, yd)
    ->
    xy = f32[] multiply(x, y)
    cd = f32[] multiply(c, d)
    ROOT r = f32[] multiply(xy, cd)
    """
    left, right = _with_constant(i.operands[0]), _with_constant(i.operands[1])
    if left is None or right is None:
        return None
    (x, c), (y, d) = left, right
    return b.add("multiply", [b.add("multiply", [x, y], i.shape), b.add("multiply", [c, d], i.shape)], i.shape)


def _with_constant(i: Instruction) -> tuple[Instruction, Instruction] | None:
    """The other factor of a product by a known value, and that value."""
    if i.opcode != "multiply":
        return None
    x, c = i.operands
    if splat_value(c) is None:
        x, c = c, x
    return (x, c) if splat_value(c) is not None and splat_value(x) is None else None


@rule("multiply", operand="broadcast", layouts="free", floats="reassociating")
def constant_into_broadcast(i: Instruction, b: Builder) -> Instruction | None:
    """(x * c) * broadcast(y) == x * broadcast(y * c), for floats up to rounding; XLA does it by default

    c = f32[] constant(2)
    cs = f32[2,3] broadcast(c), dimensions={}
    xc = f32[2,3] multiply(f32[2,3] x, cs)
    ys = f32[2,3] broadcast(f32[3] y), dimensions={1}
    ROOT r = f32[2,3] multiply(xc, ys)
    ->
    ds = f32[3] broadcast(c), dimensions={}
    yc = f32[3] multiply(y, ds)
    z = f32[2,3] broadcast(yc), dimensions={1}
    ROOT r = f32[2,3] multiply(x, z)
    """
    for n, repeated in enumerate(i.operands):
        found = _with_constant(i.operands[1 - n])
        if found is None or repeated.opcode != "broadcast" or splat_value(repeated) is not None:
            continue
        (x, c), y = found, repeated.operands[0]
        if c.opcode != "broadcast" or c.operands[0].shape.rank or y.shape.num_elements == i.shape.num_elements:
            continue
        scaled = b.add("multiply", [y, b.broadcast(c.operands[0], y.shape.dims, ())], y.shape)
        return b.add("multiply", [x, b.broadcast(scaled, i.shape.dims, repeated.attrs["dimensions"])], i.shape)
    return None


@rule("multiply", operand="abs")
def square_of_abs(i: Instruction, b: Builder) -> Instruction | None:
    """|x| * |x| == x * x for real x

    a = f32[] abs(f32[] x)
    ROOT r = f32[] multiply(a, a)
    ->
    ROOT r = f32[] multiply(x, x)
    """
    match i.operands:
        case [Instruction(opcode="abs", operands=[x]) as a, c] if a is c and not x.shape.element_type.is_complex:
            return b.add("multiply", [x, x], i.shape)
    return None


@rule("multiply", operand="convert", floats="finite-only")
def multiply_by_truth(i: Instruction, b: Builder) -> Instruction | None:
    """x * convert(p) == p ? x : 0 for a truth value p, of floats finite ones; XLA does it by default

    c = f32[] convert(pred[] p)
    ROOT r = f32[] multiply(f32[] x, c)
    ->
    zero = f32[] constant(0)
    ROOT r = f32[] select(p, x, zero)
    """
    for n, c in enumerate(i.operands):
        if c.opcode == "convert" and c.operands[0].shape.element_type.kind == "pred":
            return b.add("select", [c.operands[0], i.operands[1 - n], b.splat(i.shape, 0)], i.shape)
    return None


@rule("multiply", operand="exponential", math="finite-only")
def multiply_exponentials(i: Instruction, b: Builder) -> Instruction | None:
    """exp(x) * exp(y) == exp(x + y) up to rounding, where nothing overflows

    p = f32[] exponential(f32[] x)
    q = f32[] exponential(f32[] y)
    ROOT r = f32[] multiply(p, q)
    ->
    s = f32[] add(x, y)
    ROOT r = f32[] exponential(s)
    """
    match i.operands:
        case [Instruction(opcode="exponential", operands=[x]), Instruction(opcode="exponential", operands=[y])]:
            return b.add("exponential", [b.add("add", [x, y], i.shape)], i.shape)
    return None


@rule("multiply", operand=("sqrt", "rsqrt"), math="reassociating")
def square_of_root(i: Instruction, b: Builder) -> Instruction | None:
    """sqrt(x) * sqrt(x) == x, rsqrt(x) * rsqrt(x) == 1 / x for x >= 0, up to rounding; XLA does it by default

    a = f32[] abs(f32[] x)
    s = f32[] sqrt(a)
    ROOT r = f32[] multiply(s, s)
    ->
    ROOT r = f32[] abs(x)
    """
    s, other = i.operands
    if s is not other or not i.shape.element_type.is_float or not never_negative(s.operands[0]):
        return None
    x = s.operands[0]
    return x if s.opcode == "sqrt" else b.add("divide", [b.splat(i.shape, 1), x], i.shape)
