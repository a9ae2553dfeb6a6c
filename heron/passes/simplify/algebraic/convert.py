"""Conversions between types."""

from __future__ import annotations

import ml_dtypes

from heron.hlo.instruction import Instruction
from heron.hlo.types import ElementType
from heron.passes.simplify.algebraic.rules import Builder, rule

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
            if not _skips(x.shape.element_type, inner.shape.element_type, i.shape.element_type):
                return None
            same = x.shape.element_type is i.shape.element_type
            return x if same else b.add("convert", [x], i.shape)
    return None


def _skips(a: ElementType, via: ElementType, to: ElementType) -> bool:
    """Whether converting `a` to `via` to `to` gives what converting `a` to `to` gives, for every value."""
    if _holds_all(a, via):
        # integers wrap when narrowed, so going by a float first would not be the same
        return not (via.is_float and a.is_integer and to.is_integer and not _holds_all(a, to))
    # narrowing an integer twice keeps the low bits that narrowing once keeps
    return a.is_integer and via.is_integer and to.is_integer and to.bits <= via.bits <= a.bits


def _holds_all(a: ElementType, via: ElementType) -> bool:
    """Whether every value of `a` is a value of `via`."""
    if a is via:
        return True
    if a.kind == "pred":
        return via.is_integer and via.bits > 1 or via.is_complex or via.is_float and via.bits >= 16
    if via.is_complex:
        return not a.is_complex and _holds_all(a, via.component) or (a.is_complex and a.bits <= via.bits)
    if a.is_integer and via.is_integer:
        if a.is_signed == via.is_signed:
            return a.bits <= via.bits
        return a.is_unsigned and a.bits < via.bits
    if via.is_float and via.bits < 16:
        return False  # the small formats differ in what they have of infinities, NaNs and zeros
    if a.is_integer and via.is_float:
        mantissa, largest = _range(via)
        return a.bits - a.is_signed <= mantissa and largest > 1 << a.bits
    if a.is_float and via.is_float and a.bits >= 16:
        return all(mine <= theirs for mine, theirs in zip(_range(a), _range(via), strict=True))
    return False


def _range(t: ElementType) -> tuple[int, float]:
    """Significant bits, hidden one included, and the largest value."""
    info = ml_dtypes.finfo(t.dtype)
    return int(info.nmant) + 1, float(info.max)


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


@rule("convert", operand="iota")
def convert_of_iota(i: Instruction, b: Builder) -> Instruction | None:
    """convert(iota()) == iota() of the other type, where that one holds every index

    it = s32[8] iota(), iota_dimension=0
    ROOT r = f32[8] convert(it)
    ->
    ROOT r = f32[8] iota(), iota_dimension=0
    """
    x = i.operands[0]
    if x.opcode != "iota" or i.shape.element_type.kind == "pred" or i.shape.element_type.bits < 8:
        return None
    size = x.shape.dims[x.attrs["iota_dimension"]]
    if size > min(_last_exact(x.shape.element_type), _last_exact(i.shape.element_type)):
        return None
    return b.add("iota", [], i.shape, iota_dimension=x.attrs["iota_dimension"])


def _last_exact(t: ElementType) -> int:
    """How many integers from 0 on the type holds exactly."""
    if t.is_integer:
        return 1 << (t.bits - t.is_signed)
    bits, largest = _range(t.component)
    return int(min(2.0**bits, largest))
