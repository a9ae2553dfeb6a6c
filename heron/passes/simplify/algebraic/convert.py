"""Conversions between types."""

from __future__ import annotations

import ml_dtypes

from heron.hlo.exact import holds_all
from heron.hlo.facts import having, is_additive
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.hlo.ir.types import ElementType
from heron.passes.rewriting.rules import Builder, rule

LAYOUTS = "kept"


@rule("convert", "bitcast-convert")
def convert_to_same(i: Instruction, b: Builder) -> Instruction | None:
    """convert(x) to x's own type == x

    ROOT r = f32[4] convert(f32[4] x)
    ->
    ROOT x
    """
    x = i.operands[0]
    return x if x.shape.element_type is i.shape.element_type else None


@rule("convert", operand="convert")
def convert_of_convert(i: Instruction, b: Builder) -> Instruction | None:
    """convert(convert(x)) == convert(x) where the inner one loses nothing

    wide = f32[4] convert(bf16[4] x)
    ROOT r = bf16[4] convert(wide)
    ->
    ROOT x
    """
    match i.operands:
        case [Instruction(opcode="convert", operands=[x]) as inner]:
            if not skips(x.shape.element_type, inner.shape.element_type, i.shape.element_type):
                return None
            same = x.shape.element_type is i.shape.element_type
            return x if same else b.add("convert", [x], i.shape)
    return None


def skips(a: ElementType, via: ElementType, to: ElementType) -> bool:
    """Whether converting `a` to `via` to `to` gives what converting `a` to `to` gives, for every value."""
    if holds_all(a, via):
        # integers wrap when narrowed, so going by a float first would not be the same
        return not (via.is_float and a.is_integer and to.is_integer and not holds_all(a, to))
    # narrowing an integer twice keeps the low bits that narrowing once keeps
    return a.is_integer and via.is_integer and to.is_integer and to.bits <= via.bits <= a.bits


@rule("bitcast-convert", operand="bitcast-convert")
def bitcast_of_bitcast(i: Instruction, b: Builder) -> Instruction | None:
    """bitcast-convert(bitcast-convert(x)) == bitcast-convert(x)

    u = u32[4] bitcast-convert(f32[4] x)
    ROOT r = s32[4] bitcast-convert(u)
    ->
    ROOT r = s32[4] bitcast-convert(x)
    """
    match i.operands:
        case [Instruction(opcode="bitcast-convert", operands=[x])]:
            same = x.shape.element_type is i.shape.element_type and x.shape.dims == i.shape.dims
            return x if same else b.add("bitcast-convert", [x], i.shape)
    return None


@rule("convert", operand=having(Trait.ADDS, Trait.SCALES) | {"remainder"}, layouts="free")
def compute_in_the_narrow_type(i: Instruction, b: Builder) -> Instruction | None:
    """convert(convert(x) + convert(y)) == x + y for integers, likewise -, *, and / and % of unsigned ones

    p = s32[4] convert(s8[4] x)
    q = s32[4] convert(s8[4] y)
    sum = s32[4] add(p, q)
    ROOT r = s8[4] convert(sum)
    ->
    ROOT r = s8[4] add(x, y)
    """
    f, narrow = i.operands[0], i.shape.element_type
    wide = f.shape.element_type
    if len(f.users) > 1 or not (narrow.is_integer and wide.is_integer and 8 <= narrow.bits < wide.bits):
        return None
    if narrow.is_signed != wide.is_signed:
        return None
    if narrow.is_signed and not (is_additive(f) or f.opcode == "multiply"):  # -128 / -1 is 128 in the wide type only
        return None
    if any(o.opcode != "convert" or o.operands[0].shape.element_type is not narrow for o in f.operands):
        return None
    return b.like(f, [o.operands[0] for o in f.operands], i.shape)


@rule("bitcast-convert", operand="concatenate", layouts="free")
def bitcast_of_joined(i: Instruction, b: Builder) -> Instruction | None:
    """bitcast-convert(concatenate(bitcast-convert(x), bitcast-convert(y))) == concatenate(x, y)

    p = u32[2] bitcast-convert(f32[2] x)
    q = u32[3] bitcast-convert(f32[3] y)
    c = u32[5] concatenate(p, q), dimensions={0}
    ROOT r = f32[5] bitcast-convert(c)
    ->
    ROOT r = f32[5] concatenate(x, y), dimensions={0}
    """
    c = i.operands[0]
    if c.opcode != "concatenate":
        return None
    for o in c.operands:
        if o.opcode != "bitcast-convert" or o.operands[0].shape.element_type is not i.shape.element_type:
            return None
        if o.shape.element_type.bits != i.shape.element_type.bits:
            return None
    return b.like(c, [o.operands[0] for o in c.operands], i.shape)


@rule("reduce-precision")
def reduce_to_own_precision(i: Instruction, b: Builder) -> Instruction | None:
    """reduce-precision(x) to the bits of x's own type == x

    ROOT r = f32[4] reduce-precision(f32[4] x), exponent_bits=8, mantissa_bits=23
    ->
    ROOT x
    """
    x = i.operands[0]
    if x.shape.element_type.bits < 16:
        return None
    info = ml_dtypes.finfo(x.shape.element_type.dtype)
    same = i.exponent_bits == int(info.nexp) and i.mantissa_bits == int(info.nmant)
    return x if same else None
