"""Sums and differences."""

from __future__ import annotations

from heron.hlo.instruction import Instruction
from heron.passes.building import is_splat
from heron.passes.simplify.algebraic.rules import KNOWN, Builder, rule

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
