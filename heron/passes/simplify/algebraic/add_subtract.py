"""Sums and differences."""

from __future__ import annotations

import numpy as np

from heron.analysis.values.splat import is_splat, splat_value
from heron.hlo.ir.instruction import Instruction
from heron.passes.rewriting.rules import KNOWN, Builder, rule

LAYOUTS = "kept"


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


@rule("add", operand=KNOWN, floats="reassociating")
def add_zero(i: Instruction, b: Builder) -> Instruction | None:
    """x + 0 == x, for floats but for the sign of -0 + 0; XLA does it by default

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


@rule("subtract", floats="finite-only")
def subtract_self(i: Instruction, b: Builder) -> Instruction | None:
    """x - x == 0 for finite x

    ROOT r = f32[] subtract(f32[] x, x)
    ->
    ROOT r = f32[] constant(0)
    """
    x, y = i.operands
    return b.splat(i.shape, 0) if x is y else None


@rule("subtract", operand=KNOWN)
def subtract_constant(i: Instruction, b: Builder) -> Instruction | None:
    """x - c == x + -c

    c = f32[] constant(3)
    ROOT r = f32[] subtract(f32[] x, c)
    ->
    d = f32[] constant(-3)
    ROOT r = f32[] add(x, d)
    """
    x, c = i.operands
    t, value = i.shape.element_type, splat_value(c)
    if value is None or splat_value(x) is not None or not (t.is_integer or t.is_float):
        return None
    if t.is_integer:
        low = -(1 << t.bits - 1) if t.is_signed else 0
        return b.add("add", [x, b.splat(i.shape, (-int(value) - low) % (1 << t.bits) + low)], i.shape)
    return None if t.bits < 16 else b.add("add", [x, b.splat(i.shape, -value)], i.shape)


@rule("add", operand=KNOWN, floats="reassociating")
def add_constant_to_difference(i: Instruction, b: Builder) -> Instruction | None:
    """(c - x) + d == (c + d) - x, for floats up to rounding; XLA does it by default

    c = f32[] constant(2)
    d = f32[] constant(3)
    y = f32[] subtract(c, f32[] x)
    ROOT r = f32[] add(y, d)
    ->
    cd = f32[] add(c, d)
    ROOT r = f32[] subtract(cd, x)
    """
    match i.operands:
        case [Instruction(opcode="subtract", operands=[c, x]), d]:
            pass
        case [d, Instruction(opcode="subtract", operands=[c, x])]:
            pass
        case _:
            return None
    if splat_value(c) is None or splat_value(d) is None or splat_value(x) is not None:
        return None
    return b.add("subtract", [b.add("add", [c, d], i.shape), x], i.shape)


@rule("add", "subtract", operand=("add", "subtract"), floats="finite-only")
def undone(i: Instruction, b: Builder) -> Instruction | None:
    """x + (y - x) == y, x - (x - y) == y, (x + y) - x == y, x - (x + y) == -y, for finite floats up to rounding

    d = f32[] subtract(f32[] y, f32[] x)
    ROOT r = f32[] add(x, d)
    ->
    ROOT y
    """
    match i.opcode, i.operands:
        case "add", [x, Instruction(opcode="subtract", operands=[y, z])] if x is z:
            return y
        case "add", [Instruction(opcode="subtract", operands=[y, z]), x] if x is z:
            return y
        case "subtract", [x, Instruction(opcode="subtract", operands=[y, z])] if x is y:
            return z
        case "subtract", [x, Instruction(opcode="add", operands=[y, z])] if x is y or x is z:
            return b.add("negate", [z if x is y else y], i.shape)
        case "subtract", [Instruction(opcode="add", operands=[y, z]), x] if x is y or x is z:
            return z if x is y else y
    return None


@rule("add", operand="multiply", floats="reassociating")
def common_factor(i: Instruction, b: Builder) -> Instruction | None:
    """x * z + y * z == (x + y) * z where the products have no other use, for integers and, as XLA, floats with z == 2^n

    p = s32[] multiply(s32[] x, s32[] z)
    q = s32[] multiply(s32[] y, z)
    ROOT r = s32[] add(p, q)
    ->
    s = s32[] add(x, y)
    ROOT r = s32[] multiply(s, z)
    """
    p, q = i.operands
    if p.opcode != "multiply" or q.opcode != "multiply" or p is q or len(p.users) > 1 or len(q.users) > 1:
        return None
    for n, z in enumerate(p.operands):
        if z not in q.operands or not (i.shape.element_type.is_integer or _is_power_of_two(z)):
            continue
        y = q.operands[1 - q.operands.index(z)]
        return b.add("multiply", [b.add("add", [p.operands[1 - n], y], i.shape), z], i.shape)
    return None


def _is_power_of_two(z: Instruction) -> bool:
    value = splat_value(z)
    if value is None or not z.shape.element_type.is_float:
        return False
    return bool(np.isfinite(float(value))) and abs(np.frexp(float(value))[0]) == 0.5


@rule("add", operand="dynamic-update-slice", layouts="free")
def add_to_a_part(i: Instruction, b: Builder) -> Instruction | None:
    """x + (zeros with u in one place) == x with u added to that place, for integers and for zeros that are -0

    zero = s32[] constant(0)
    zeros = s32[8] broadcast(zero), dimensions={}
    y = s32[8] dynamic-update-slice(zeros, s32[2] u, s32[] n)
    ROOT r = s32[8] add(s32[8] x, y)
    ->
    part = s32[2] dynamic-slice(x, n), dynamic_slice_sizes={2}
    v = s32[2] add(part, u)
    ROOT r = s32[8] dynamic-update-slice(x, v, n)
    """
    return _added_to_part(i, b, 0 if i.shape.element_type.is_integer else -0.0)


@rule("add", operand="dynamic-update-slice", layouts="free", math="reassociating")
def add_floats_to_a_part(i: Instruction, b: Builder) -> Instruction | None:
    """x + (zeros with u in one place) == x with u added to that place, but for -0 + 0; XLA does it by default

    zero = f32[] constant(0)
    zeros = f32[8] broadcast(zero), dimensions={}
    y = f32[8] dynamic-update-slice(zeros, f32[2] u, s32[] n)
    ROOT r = f32[8] add(f32[8] x, y)
    ->
    part = f32[2] dynamic-slice(x, n), dynamic_slice_sizes={2}
    v = f32[2] add(part, u)
    ROOT r = f32[8] dynamic-update-slice(x, v, n)
    """
    return _added_to_part(i, b, 0)


def _added_to_part(i: Instruction, b: Builder, zero: float) -> Instruction | None:
    for n, y in enumerate(i.operands):
        if y.opcode != "dynamic-update-slice" or len(y.users) > 1 or not is_splat(y.operands[0], zero):
            continue
        x, u, starts = i.operands[1 - n], y.operands[1], y.operands[2:]
        part = b.add("dynamic-slice", [x, *starts], u.shape, dynamic_slice_sizes=u.shape.dims)
        return b.add("dynamic-update-slice", [x, b.add("add", [part, u], u.shape), *starts], i.shape)
    return None
