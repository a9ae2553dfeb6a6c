"""and, or, xor, not, shifts, minimum, maximum, clamp."""

from __future__ import annotations

import numpy as np

from heron.analysis.values.splat import is_splat, splat_value
from heron.hlo import facts
from heron.hlo.ir.instruction import Instruction
from heron.passes.rewriting.rules import KNOWN, Builder, rule

LAYOUTS = "kept"

_INVERSE = {"EQ": "NE", "NE": "EQ", "LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT"}


@rule("and", "or", "maximum", "minimum")
def same_operands(i: Instruction, b: Builder) -> Instruction | None:
    """x and x == x, max(x, x) == x, and the like

    ROOT r = f32[] maximum(f32[] x, x)
    ->
    ROOT x
    """
    x, y = i.operands
    return x if x is y else None


@rule("and", "or", "xor", "maximum", "minimum", operand=KNOWN)
def neutral_operand(i: Instruction, b: Builder) -> Instruction | None:
    """x and true == x, x or 0 == x, max(x, -inf) == x, and the like

    low = f32[] constant(-inf)
    ROOT r = f32[] maximum(f32[] x, low)
    ->
    ROOT x
    """
    x, c = i.operands
    if splat_value(c) is None:
        x, c = c, x
    neutral = facts.identity(i.opcode, i.shape.element_type)
    return x if neutral is not None and is_splat(c, neutral) else None


@rule("and", "or", operand=KNOWN)
def absorbing_operand(i: Instruction, b: Builder) -> Instruction | None:
    """x and false == false, x or true == true

    f = pred[] constant(false)
    ROOT r = pred[] and(pred[] x, f)
    ->
    ROOT f
    """
    absorbing = facts.identity("or" if i.opcode == "and" else "and", i.shape.element_type)
    for c in i.operands:
        if is_splat(c, absorbing):
            return c
    return None


@rule("xor")
def xor_self(i: Instruction, b: Builder) -> Instruction | None:
    """x xor x == 0

    ROOT r = u32[] xor(u32[] x, x)
    ->
    ROOT r = u32[] constant(0)
    """
    x, y = i.operands
    return b.splat(i.shape, 0) if x is y else None


@rule("not", operand="not")
def not_not(i: Instruction, b: Builder) -> Instruction | None:
    """not not x == x

    n = pred[] not(pred[] x)
    ROOT r = pred[] not(n)
    ->
    ROOT x
    """
    match i.operands:
        case [Instruction(opcode="not", operands=[x])]:
            return x
    return None


@rule("not", operand="compare")
def not_compare(i: Instruction, b: Builder) -> Instruction | None:
    """not (x < y) == x >= y where no NaN can be; not (x == y) == x != y always

    c = pred[] compare(s32[] x, s32[] y), direction=LT
    ROOT r = pred[] not(c)
    ->
    ROOT r = pred[] compare(x, y), direction=GE
    """
    match i.operands:
        case [Instruction(opcode="compare", operands=[x, y], attrs={"direction": direction, **rest})]:
            unordered = not x.shape.element_type.is_integer and rest.get("type") != "TOTALORDER"
            if unordered and direction not in ("EQ", "NE"):
                return None
            return b.add("compare", [x, y], i.shape, direction=_INVERSE[direction], **rest)
    return None


@rule("shift-left", "shift-right-logical", "shift-right-arithmetic", operand=KNOWN)
def shift_by_zero(i: Instruction, b: Builder) -> Instruction | None:
    """x << 0 == x

    zero = u32[] constant(0)
    ROOT r = u32[] shift-left(u32[] x, zero)
    ->
    ROOT x
    """
    match i.operands:
        case [x, zero] if is_splat(zero, 0):
            return x
        case [zero, _] if is_splat(zero, 0):
            return zero
    return None


@rule("clamp", operand=KNOWN)
def clamp_to_range(i: Instruction, b: Builder) -> Instruction | None:
    """clamp(lowest, x, highest) == x for integers

    low = u8[] constant(0)
    high = u8[] constant(255)
    ROOT r = u8[] clamp(low, u8[] x, high)
    ->
    ROOT x
    """
    if not i.shape.element_type.is_integer:
        return None
    low, x, high = i.operands
    lowest = facts.identity("maximum", i.shape.element_type)
    highest = facts.identity("minimum", i.shape.element_type)
    return x if is_splat(low, lowest) and is_splat(high, highest) else None


@rule("clamp", operand=KNOWN)
def clamp_to_point(i: Instruction, b: Builder) -> Instruction | None:
    """clamp(c, x, c) == c for integers

    low = s32[] constant(0)
    high = s32[] constant(0)
    ROOT r = s32[3] clamp(low, s32[3] x, high)
    ->
    low = s32[] constant(0)
    ROOT r = s32[3] broadcast(low), dimensions={}
    """
    if not i.shape.element_type.is_integer:
        return None
    low, high = splat_value(i.operands[0]), splat_value(i.operands[2])
    if low is None or high is None or np.asarray(low != high).any():
        return None
    return b.splat(i.shape, low)
