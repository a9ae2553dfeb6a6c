"""Copies and bitcasts: what only changes the layout, or not even that."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.layout import layout
from heron.hlo.ir.shape import Shape
from heron.hlo.verifier.layouts import is_bitcast
from heron.passes.rewriting.rules import Builder, rule

LAYOUTS = "only"


def _space(s: Shape) -> int:
    return s.layout.memory_space if s.layout is not None else 0


def _stays(a: Shape, b: Shape) -> bool:
    """Whether a reshape from `a` to `b` leaves every element where it is in memory."""
    if a.layout is None or b.layout is None or a.layout.tiles or b.layout.tiles or _space(a) != _space(b):
        return False
    return is_bitcast(a, b)


@rule("copy", layouts="kept")
def copy_to_same(i: Instruction, b: Builder) -> Instruction | None:
    """copy(x) == x where x has the layout of its copy, or none counts

    ROOT r = f32[4] copy(f32[4] x)
    ->
    ROOT x
    """
    x = i.operands[0]
    if _space(x.shape) != _space(i.shape) or (b.with_layouts and x.shape is not i.shape):
        return None
    return x


@rule("copy", operand="copy")
def copy_of_copy(i: Instruction, b: Builder) -> Instruction | None:
    """copy(copy(x)) == copy(x)

    y = f32[2,3]{0,1} copy(f32[2,3]{1,0} x)
    ROOT r = f32[2,3]{1,0} copy(y)
    ->
    ROOT r = f32[2,3]{1,0} copy(x)
    """
    y = i.operands[0]
    if y.opcode != "copy" or not _space(i.shape) == _space(y.shape) == _space(y.operands[0].shape):
        return None
    return b.add("copy", [y.operands[0]], i.shape)


@rule("bitcast")
def bitcast_to_same(i: Instruction, b: Builder) -> Instruction | None:
    """bitcast(x) to x's own shape and layout == x

    ROOT r = f32[4] bitcast(f32[4] x)
    ->
    ROOT x
    """
    return i.operands[0] if i.operands[0].shape is i.shape else None


@rule("bitcast", operand="bitcast")
def bitcast_again(i: Instruction, b: Builder) -> Instruction | None:
    """bitcast(bitcast(x)) == bitcast(x)

    y = f32[6] bitcast(f32[2,3] x)
    ROOT r = f32[3,2] bitcast(y)
    ->
    ROOT r = f32[3,2] bitcast(x)
    """
    y = i.operands[0]
    return b.add("bitcast", [y.operands[0]], i.shape) if y.opcode == "bitcast" else None


@rule("bitcast")
def bitcast_around_elementwise(i: Instruction, b: Builder) -> Instruction | None:
    """bitcast(f(bitcast(x))) == bitcast(f(x)) for elementwise f of one operand that keeps the type

    y = f32[6] bitcast(f32[2,3] x)
    z = f32[6] negate(y)
    ROOT r = f32[3,2] bitcast(z)
    ->
    w = f32[2,3] negate(x)
    ROOT r = f32[3,2] bitcast(w)
    """
    z = i.operands[0]
    if not z.op.is_elementwise or len(z.operands) != 1 or len(z.users) > 1 or z.operands[0].opcode != "bitcast":
        return None
    x = z.operands[0].operands[0]
    if len({s.element_type for s in (i.shape, z.shape, z.operands[0].shape, x.shape)}) > 1:
        return None
    return b.add("bitcast", [b.like(z, [x], x.shape)], i.shape)


@rule("reshape", "transpose", "copy")
def bitcast_instead(i: Instruction, b: Builder) -> Instruction | None:
    """reshape(x), transpose(x), copy(x) == bitcast(x) where every element stays where it is in memory

    ROOT r = f32[3,2]{0,1} transpose(f32[2,3]{1,0} x), dimensions={1,0}
    ->
    ROOT r = f32[3,2]{0,1} bitcast(x)
    """
    x = i.operands[0]
    before = x.shape
    if i.opcode == "transpose" and before.layout is not None and not before.layout.tiles:
        # the operand as if its dimensions were already in the new order
        order = tuple([i.attrs["dimensions"].index(d) for d in before.layout.minor_to_major])
        before = i.shape.with_layout(layout(order, memory_space=before.layout.memory_space))
    return b.add("bitcast", [x], i.shape) if _stays(before, i.shape) else None


@rule("copy", operand="reshape")
def copy_of_reshape(i: Instruction, b: Builder) -> Instruction | None:
    """copy(reshape(x)) == bitcast(x) where the reshape moves elements and the copy moves them back

    y = f32[3,2]{0,1} reshape(f32[6] x)
    ROOT r = f32[3,2]{1,0} copy(y)
    ->
    ROOT r = f32[3,2]{1,0} bitcast(x)
    """
    y = i.operands[0]
    if y.opcode != "reshape" or len(y.users) > 1:
        return None
    x = y.operands[0]
    return b.add("bitcast", [x], i.shape) if _stays(x.shape, i.shape) else None


@rule("reshape", operand="copy")
def reshape_of_copy(i: Instruction, b: Builder) -> Instruction | None:
    """reshape(copy(x)) == bitcast(x) where the copy moves elements and the reshape moves them back

    y = f32[3,2]{0,1} copy(f32[3,2]{1,0} x)
    ROOT r = f32[6] reshape(y)
    ->
    ROOT r = f32[6] bitcast(x)
    """
    y = i.operands[0]
    if y.opcode != "copy" or len(y.users) > 1:
        return None
    x = y.operands[0]
    return b.add("bitcast", [x], i.shape) if _stays(x.shape, i.shape) else None


@rule("custom-call")
def layout_constraint(i: Instruction, b: Builder) -> Instruction | None:
    """LayoutConstraint(x) == x where x has that layout, else copy(x)

    ROOT r = f32[2,3]{0,1} custom-call(f32[2,3]{1,0} x), custom_call_target="LayoutConstraint"
    ->
    ROOT r = f32[2,3]{0,1} copy(x)
    """
    if i.custom_call_target != "LayoutConstraint" or len(i.operands) != 1:
        return None
    x = i.operands[0]
    if x.shape.bare is not i.shape.bare:
        return None
    return x if x.shape is i.shape else b.add("copy", [x], i.shape)
