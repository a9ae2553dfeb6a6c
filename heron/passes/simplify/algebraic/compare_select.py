"""Comparisons and selects."""

from __future__ import annotations

from heron.hlo.instruction import Instruction
from heron.passes.building import is_splat, splat_value
from heron.passes.simplify.algebraic.rules import KNOWN, Builder, rule

LAYOUTS = "kept"

_TRUE_ON_EQUAL = frozenset({"EQ", "GE", "LE"})


@rule("compare")
def compare_self(i: Instruction, b: Builder) -> Instruction | None:
    """x < x == false; x == x is true where no NaN can be

    ROOT r = pred[] compare(s32[] x, x), direction=GE
    ->
    ROOT r = pred[] constant(true)
    """
    x, y = i.operands
    if x is not y:
        return None
    has_nan = x.shape.element_type.is_float or x.shape.element_type.is_complex
    if has_nan and i.type != "TOTALORDER" and (i.direction in _TRUE_ON_EQUAL or i.direction == "NE"):
        return None
    return b.splat(i.shape, i.direction in _TRUE_ON_EQUAL)


@rule("compare", operand=KNOWN)
def compare_with_truth(i: Instruction, b: Builder) -> Instruction | None:
    """x != false == x, x == true == x, x == false == not x, x != true == not x

    f = pred[] constant(false)
    ROOT r = pred[] compare(pred[] x, f), direction=NE
    ->
    ROOT x
    """
    x, c = i.operands
    if x.shape.element_type.kind != "pred" or i.direction not in ("EQ", "NE"):
        return None
    value = splat_value(c)
    if value is None:
        x, c = c, x
        value = splat_value(c)
    if value is None:
        return None
    return x if bool(value) == (i.direction == "EQ") else b.add("not", [x], i.shape)


@rule("compare", operand=KNOWN)
def compare_unsigned_with_zero(i: Instruction, b: Builder) -> Instruction | None:
    """x < 0 == false, x >= 0 == true for unsigned x

    zero = u32[] constant(0)
    ROOT r = pred[] compare(u32[] x, zero), direction=LT
    ->
    ROOT r = pred[] constant(false)
    """
    x, c = i.operands
    if x.shape.element_type.is_unsigned and i.direction in ("LT", "GE") and is_splat(c, 0):
        return b.splat(i.shape, i.direction == "GE")
    return None


@rule("compare", operand="iota")
def compare_iota_with_bound(i: Instruction, b: Builder) -> Instruction | None:
    """iota() < 0 == false, iota() < n == true for n >= its size, and the like

    it = s32[8] iota(), iota_dimension=0
    zero = s32[] constant(0)
    zeros = s32[8] broadcast(zero), dimensions={}
    ROOT r = pred[8] compare(it, zeros), direction=LT
    ->
    f = pred[] constant(false)
    ROOT r = pred[8] broadcast(f), dimensions={}
    """
    x, c = i.operands
    if x.opcode != "iota" or not x.shape.element_type.is_integer:
        return None
    bound = splat_value(c)
    if bound is None:
        return None
    bound, size = int(bound), x.shape.dims[x.attrs["iota_dimension"]]
    if size > 1 << (x.shape.element_type.bits - 1):  # may have wrapped round
        return None
    match i.direction:
        case "LT":
            known = False if bound <= 0 else True if bound >= size else None
        case "GE":
            known = True if bound <= 0 else False if bound >= size else None
        case "LE":
            known = False if bound < 0 else True if bound >= size - 1 else None
        case "GT":
            known = True if bound < 0 else False if bound >= size - 1 else None
        case _:
            known = None
    return None if known is None else b.splat(i.shape, known)


@rule("select", operand=KNOWN)
def select_known(i: Instruction, b: Builder) -> Instruction | None:
    """true ? x : y == x, false ? x : y == y

    t = pred[] constant(true)
    ROOT r = f32[] select(t, f32[] x, f32[] y)
    ->
    ROOT x
    """
    value = splat_value(i.operands[0])
    return None if value is None else i.operands[1 if value else 2]


@rule("select")
def select_same(i: Instruction, b: Builder) -> Instruction | None:
    """p ? x : x == x

    ROOT r = f32[] select(pred[] p, f32[] x, x)
    ->
    ROOT x
    """
    _, x, y = i.operands
    return x if x is y else None


@rule("select", operand="not")
def select_by_not(i: Instruction, b: Builder) -> Instruction | None:
    """not p ? x : y == p ? y : x

    n = pred[] not(pred[] p)
    ROOT r = f32[] select(n, f32[] x, f32[] y)
    ->
    ROOT r = f32[] select(p, y, x)
    """
    match i.operands:
        case [Instruction(opcode="not", operands=[p]), x, y]:
            return b.add("select", [p, y, x], i.shape)
    return None


@rule("select", operand=KNOWN)
def select_truth(i: Instruction, b: Builder) -> Instruction | None:
    """p ? x : false == p and x, p ? true : y == p or y, p ? true : false == p, p ? false : true == not p

    f = pred[] constant(false)
    ROOT r = pred[] select(pred[] p, pred[] x, f)
    ->
    ROOT r = pred[] and(p, x)
    """
    p, x, y = i.operands
    if i.shape.element_type.kind != "pred" or p.shape.rank != i.shape.rank:
        return None
    when, otherwise = splat_value(x), splat_value(y)
    if when is not None and otherwise is not None and bool(when) != bool(otherwise):
        return p if when else b.add("not", [p], i.shape)
    if when is not None and when:
        return b.add("or", [p, y], i.shape)
    if otherwise is not None and not otherwise:
        return b.add("and", [p, x], i.shape)
    return None


@rule("select", operand="select")
def select_of_select(i: Instruction, b: Builder) -> Instruction | None:
    """p ? (p ? x : y) : z == p ? x : z

    s = f32[] select(pred[] p, f32[] x, f32[] y)
    ROOT r = f32[] select(p, s, f32[] z)
    ->
    ROOT r = f32[] select(p, x, z)
    """
    p, x, y = i.operands
    if x.opcode == "select" and x.operands[0] is p:
        return b.add("select", [p, x.operands[1], y], i.shape)
    if y.opcode == "select" and y.operands[0] is p:
        return b.add("select", [p, x, y.operands[2]], i.shape)
    return None
