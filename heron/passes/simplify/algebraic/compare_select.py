"""Comparisons and selects."""

from __future__ import annotations

from heron.analysis.values.non_negative import never_negative
from heron.analysis.values.splat import is_splat, splat_value
from heron.hlo.facts import having
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.hlo.ops.compare import COMPARISONS
from heron.passes.rewriting.rules import KNOWN, Builder, rule

LAYOUTS = "kept"

_MIRRORED = {"EQ": "EQ", "NE": "NE", "LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE"}
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
    direction = i.direction
    if is_splat(x, 0):
        x, c, direction = c, x, _MIRRORED[direction]
    if x.shape.element_type.is_unsigned and direction in ("LT", "GE") and is_splat(c, 0):
        return b.splat(i.shape, direction == "GE")
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


def _ordered(i: Instruction) -> bool:
    """Whether a comparison is by value, not by the total order of bit patterns."""
    return i.attrs.get("type") != "TOTALORDER"


@rule("compare", operand=KNOWN)
def compare_never_negative(i: Instruction, b: Builder) -> Instruction | None:
    """x < 0 == false where x is never negative; x >= 0 == true for such integers

    zero = f32[] constant(0)
    e = f32[] exponential(f32[] x)
    ROOT r = pred[] compare(e, zero), direction=LT
    ->
    ROOT r = pred[] constant(false)
    """
    x, zero = i.operands
    direction = i.direction
    if is_splat(x, 0):
        x, zero, direction = zero, x, _MIRRORED[direction]
    if not _ordered(i) or direction not in ("LT", "GE") or not is_splat(zero, 0) or not never_negative(x):
        return None
    if direction == "GE" and not x.shape.element_type.is_integer:
        return None  # a NaN is not
    return b.splat(i.shape, direction == "GE")


@rule("compare", operand=KNOWN, math="finite-only")
def compare_never_negative_float(i: Instruction, b: Builder) -> Instruction | None:
    """x >= 0 == true where x is never negative and no NaN; XLA does it by default

    zero = f32[] constant(0)
    e = f32[] exponential(f32[] x)
    ROOT r = pred[] compare(e, zero), direction=GE
    ->
    ROOT r = pred[] constant(true)
    """
    x, zero = i.operands
    if not _ordered(i) or i.direction != "GE" or not is_splat(zero, 0) or not never_negative(x):
        return None
    return b.splat(i.shape, True)


@rule("compare", operand="select")
def compare_chosen_constants(i: Instruction, b: Builder) -> Instruction | None:
    """(p ? c : d) < e == p, not p, true or false, where all three are known

    one = f32[] constant(1)
    zero = f32[] constant(0)
    s = f32[] select(pred[] p, one, zero)
    ROOT r = pred[] compare(s, zero), direction=NE
    ->
    ROOT p
    """
    x, y = i.operands
    direction = i.direction
    if x.opcode != "select":
        x, y, direction = y, x, _MIRRORED[direction]
    if x.opcode != "select" or not _ordered(i) or x.shape.element_type.is_complex:
        return None
    p, c, d = x.operands
    values = [splat_value(v) for v in (c, d, y)]
    if p.shape.dims != i.shape.dims or any(v is None for v in values):
        return None
    when, otherwise = (bool(COMPARISONS[direction](v, values[2])) for v in values[:2])
    if when == otherwise:
        return b.splat(i.shape, when)
    return p if when else b.add("not", [p], i.shape)


@rule("compare", operand=having(Trait.EXTREMUM))
def compare_with_larger(i: Instruction, b: Builder) -> Instruction | None:
    """max(x, y) > x == y > x, min(x, y) < x == y < x

    m = f32[] maximum(f32[] x, f32[] y)
    ROOT r = pred[] compare(m, x), direction=GT
    ->
    ROOT r = pred[] compare(y, x), direction=GT
    """
    m, x = i.operands
    direction = i.direction
    if not m.has(Trait.EXTREMUM) or x not in m.operands:
        m, x, direction = x, m, _MIRRORED[direction]
    if direction != {"maximum": "GT", "minimum": "LT"}.get(m.opcode) or x not in m.operands or not _ordered(i):
        return None
    y = m.operands[1 - m.operands.index(x)]
    attrs = {**i.attrs, "direction": direction}
    return b.add("compare", [y, x], i.shape, **attrs)


@rule("and", operand="compare")
def smaller_bound(i: Instruction, b: Builder) -> Instruction | None:
    """x < c and x < d == x < min(c, d) for integers

    c = s32[] constant(5)
    d = s32[] constant(3)
    p = pred[] compare(s32[] x, c), direction=LT
    q = pred[] compare(x, d), direction=LT
    ROOT r = pred[] and(p, q)
    ->
    ROOT r = pred[] compare(x, d), direction=LT
    """
    bounds = [_less_than(o) for o in i.operands]
    if bounds[0] is None or bounds[1] is None or bounds[0][0] is not bounds[1][0]:
        return None
    return i.operands[0 if bounds[0][1] <= bounds[1][1] else 1]


def _less_than(i: Instruction) -> tuple[Instruction, int] | None:
    """The operand that a comparison states to be less than a known integer, and that integer."""
    if i.opcode != "compare":
        return None
    x, c = i.operands
    direction = i.direction
    if direction == "GT":
        x, c, direction = c, x, "LT"
    value = splat_value(c)
    if direction != "LT" or value is None or not x.shape.element_type.is_integer:
        return None
    return x, int(value)


@rule("and", operand="compare")
def less_and_different(i: Instruction, b: Builder) -> Instruction | None:
    """x < y and x != y == x < y, x > y and x != y == x > y

    p = pred[] compare(f32[] x, f32[] y), direction=LT
    q = pred[] compare(x, y), direction=NE
    ROOT r = pred[] and(p, q)
    ->
    ROOT r = pred[] compare(x, y), direction=LT
    """
    for n, less in enumerate(i.operands):
        other = i.operands[1 - n]
        if less.opcode != "compare" or other.opcode != "compare" or less.attrs.get("type") != other.attrs.get("type"):
            continue
        if less.direction in ("LT", "GT") and other.direction == "NE" and less.operands == other.operands:
            return less
    return None


@rule("select", operand="compare")
def select_compared_truth(i: Instruction, b: Builder) -> Instruction | None:
    """x > y ? x : y == x or y, x < y ? x : y == x and y, x == y ? x : y == y, for truth values

    c = pred[] compare(pred[] x, pred[] y), direction=GT
    ROOT r = pred[] select(c, x, y)
    ->
    ROOT r = pred[] or(x, y)
    """
    match i.operands:
        case [Instruction(opcode="compare", operands=[p, q]) as c, x, y] if p is x and q is y:
            if i.shape.element_type.kind != "pred":
                return None
            match c.direction:
                case "GT" | "GE":
                    return b.add("or", [x, y], i.shape)
                case "LT" | "LE":
                    return b.add("and", [x, y], i.shape)
                case direction:
                    return y if direction == "EQ" else x
    return None


@rule("select", operand="dynamic-update-slice", layouts="free")
def select_updated(i: Instruction, b: Builder) -> Instruction | None:
    """p ? x : (x with u in one place) == x with p ? its old part : u in that place

    y = f32[8] dynamic-update-slice(f32[8] x, f32[2] u, s32[] n)
    ROOT r = f32[8] select(pred[] p, x, y)
    ->
    part = f32[2] dynamic-slice(x, n), dynamic_slice_sizes={2}
    v = f32[2] select(p, part, u)
    ROOT r = f32[8] dynamic-update-slice(x, v, n)
    """
    p, *values = i.operands
    for n, y in enumerate(values):
        x = values[1 - n]
        if y.opcode != "dynamic-update-slice" or y.operands[0] is not x or len(y.users) > 1:
            continue
        u, starts = y.operands[1], y.operands[2:]
        sizes = u.shape.dims
        if p.shape.rank:
            p = b.add("dynamic-slice", [p, *starts], p.shape.with_dims(sizes), dynamic_slice_sizes=sizes)
        part = b.add("dynamic-slice", [x, *starts], u.shape, dynamic_slice_sizes=sizes)
        chosen = b.add("select", [p, u, part] if n == 0 else [p, part, u], u.shape)
        return b.add("dynamic-update-slice", [x, chosen, *starts], i.shape)
    return None
