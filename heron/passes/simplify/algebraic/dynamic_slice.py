"""Slices and updates at computed places."""

from __future__ import annotations

from heron.hlo.instruction import Instruction
from heron.passes.building import splat_value
from heron.passes.simplify.algebraic.rules import Builder, rule


@rule("dynamic-slice")
def dynamic_slice_all(i: Instruction, b: Builder) -> Instruction | None:
    """dynamic-slice(x, ...) of x's whole size == x, since starts are clamped

    ROOT r = f32[4] dynamic-slice(f32[4] x, s32[] n), dynamic_slice_sizes={4}
    ->
    ROOT x
    """
    return i.operands[0] if i.operands[0].shape.dims == i.shape.dims else None


@rule("dynamic-slice")
def dynamic_slice_known(i: Instruction, b: Builder) -> Instruction | None:
    """dynamic-slice(x, c) == slice(x), at c clamped

    n = s32[] constant(3)
    ROOT r = f32[2] dynamic-slice(f32[4] x, n), dynamic_slice_sizes={2}
    ->
    ROOT r = f32[2] slice(x), slice={[2:4]}
    """
    x, *starts = i.operands
    if any(s.shape.rank for s in starts):
        return None
    found = []
    for start, size, whole in zip(starts, i.shape.dims, x.shape.dims, strict=True):
        value = 0 if size == whole else splat_value(start)
        if value is None:
            return None
        low = min(max(int(value), 0), whole - size)
        found.append((low, low + size, 1))
    return b.add("slice", [x], i.shape, slice=tuple(found))


@rule("dynamic-slice", operand="broadcast")
def dynamic_slice_of_broadcast(i: Instruction, b: Builder) -> Instruction | None:
    """dynamic-slice(broadcast(v), ...) == broadcast(v) for a scalar v

    x = f32[4] broadcast(f32[] v), dimensions={}
    ROOT r = f32[2] dynamic-slice(x, s32[] n), dynamic_slice_sizes={2}
    ->
    ROOT r = f32[2] broadcast(v), dimensions={}
    """
    x = i.operands[0]
    if x.opcode != "broadcast" or x.operands[0].shape.rank:
        return None
    return b.broadcast(x.operands[0], i.shape.dims, ())


@rule("dynamic-update-slice")
def update_all(i: Instruction, b: Builder) -> Instruction | None:
    """dynamic-update-slice(x, u, ...) == u when u has x's size, == x when u has no elements

    ROOT r = f32[4] dynamic-update-slice(f32[4] x, f32[4] u, s32[] n)
    ->
    ROOT u
    """
    x, update = i.operands[:2]
    if update.shape.dims == x.shape.dims:
        return update
    return x if update.shape.num_elements == 0 else None


@rule("dynamic-update-slice", operand="dynamic-slice")
def update_with_itself(i: Instruction, b: Builder) -> Instruction | None:
    """dynamic-update-slice(x, dynamic-slice(x, n), n) == x

    s = f32[2] dynamic-slice(f32[4] x, s32[] n), dynamic_slice_sizes={2}
    ROOT r = f32[4] dynamic-update-slice(x, s, n)
    ->
    ROOT x
    """
    x, update, *starts = i.operands
    if update.opcode == "dynamic-slice" and update.operands == [x, *starts]:
        return x
    return None
