"""Slices, pads, concatenates."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from heron.hlo.instruction import Instruction
from heron.passes.building import splat_value
from heron.passes.simplify.algebraic.rules import Builder, rule

Slices = tuple[tuple[int, int, int], ...]


@rule("slice")
def slice_all(i: Instruction, b: Builder) -> Instruction | None:
    """slice(x) of everything == x

    ROOT r = f32[4] slice(f32[4] x), slice={[0:4]}
    ->
    ROOT x
    """
    return i.operands[0] if i.operands[0].shape.dims == i.shape.dims else None


@rule("slice", operand="slice")
def slice_of_slice(i: Instruction, b: Builder) -> Instruction | None:
    """slice(slice(x)) == slice(x)

    a = f32[6] slice(f32[10] x), slice={[2:8]}
    ROOT r = f32[2] slice(a), slice={[1:5:3]}
    ->
    ROOT r = f32[2] slice(x), slice={[3:7:3]}
    """
    match i.operands:
        case [Instruction(opcode="slice", operands=[x], attrs={"slice": inner})]:
            both = []
            for (start, _, stride), (low, high, step) in zip(inner, i.attrs["slice"], strict=True):
                last = start + (high - 1) * stride + 1 if high > low else start + low * stride
                both.append((start + low * stride, last, stride * step))
            return b.add("slice", [x], i.shape, slice=tuple(both))
    return None


@rule("slice", operand="broadcast")
def slice_of_broadcast(i: Instruction, b: Builder) -> Instruction | None:
    """slice(broadcast(x)) == broadcast(slice(x))

    a = f32[4,8] broadcast(f32[8] x), dimensions={1}
    ROOT r = f32[2,3] slice(a), slice={[0:2], [1:4]}
    ->
    s = f32[3] slice(x), slice={[1:4]}
    ROOT r = f32[2,3] broadcast(s), dimensions={1}
    """
    match i.operands:
        case [Instruction(opcode="broadcast", operands=[x], attrs={"dimensions": dimensions})]:
            if x.shape.rank:
                dims = [i.shape.dims[d] for d in dimensions]
                part = tuple(i.attrs["slice"][d] for d in dimensions)
                if list(x.shape.dims) != dims:
                    x = b.add("slice", [x], x.shape.with_dims(tuple(dims)), slice=part)
            return b.broadcast(x, i.shape.dims, dimensions)
    return None


@rule("slice", operand="concatenate")
def slice_of_concatenate(i: Instruction, b: Builder) -> Instruction | None:
    """slice(concatenate(x, y, ...)) == slice of the one it falls into

    c = f32[7] concatenate(f32[3] x, f32[4] y), dimensions={0}
    ROOT r = f32[2] slice(c), slice={[4:6]}
    ->
    ROOT r = f32[2] slice(y), slice={[1:3]}
    """
    whole = i.operands[0]
    if whole.opcode != "concatenate" or i.shape.num_elements == 0:
        return None
    d = whole.attrs["dimensions"][0]
    start, limit, stride = i.attrs["slice"][d]
    offset = 0
    for part in whole.operands:
        size = part.shape.dims[d]
        if offset <= start and limit <= offset + size:
            moved = list(i.attrs["slice"])
            moved[d] = (start - offset, limit - offset, stride)
            return part if part.shape.dims == i.shape.dims else b.add("slice", [part], i.shape, slice=tuple(moved))
        offset += size
    return None


@rule("slice", operand="pad")
def slice_of_pad(i: Instruction, b: Builder) -> Instruction | None:
    """slice(pad(x)) == slice(x) where it misses the padding

    zero = f32[] constant(0)
    a = f32[8] pad(f32[4] x, zero), padding=2_2
    ROOT r = f32[3] slice(a), slice={[2:5]}
    ->
    ROOT r = f32[3] slice(x), slice={[0:3]}
    """
    match i.operands:
        case [Instruction(opcode="pad", operands=[x, _], attrs={"padding": padding})]:
            moved = []
            for (start, limit, stride), (low, _, interior), size in zip(
                i.attrs["slice"], padding, x.shape.dims, strict=True
            ):
                if interior or start < low or limit > low + size:
                    return None
                moved.append((start - low, limit - low, stride))
            return x if x.shape.dims == i.shape.dims else b.add("slice", [x], i.shape, slice=tuple(moved))
    return None


@rule("pad")
def pad_nothing(i: Instruction, b: Builder) -> Instruction | None:
    """pad(x) by nothing == x

    zero = f32[] constant(0)
    ROOT r = f32[4] pad(f32[4] x, zero), padding=0_0
    ->
    ROOT x
    """
    return i.operands[0] if all(p == (0, 0, 0) for p in i.attrs["padding"]) else None


@rule("pad")
def pad_by_less(i: Instruction, b: Builder) -> Instruction | None:
    """pad(x) by negative amounts == slice(x) or slice(pad(x))

    zero = f32[] constant(0)
    ROOT r = f32[4] pad(f32[5] x, zero), padding=-2_1
    ->
    zero = f32[] constant(0)
    p = f32[6] pad(x, zero), padding=0_1
    ROOT r = f32[4] slice(p), slice={[2:6]}
    """
    x, value = i.operands
    padding = i.attrs["padding"]
    if all(low >= 0 and high >= 0 for low, high, _ in padding):
        return None
    grown = tuple((max(low, 0), max(high, 0), interior) for low, high, interior in padding)
    dims = tuple(
        size + low + high + max(size - 1, 0) * interior
        for size, (low, high, interior) in zip(x.shape.dims, grown, strict=True)
    )
    cut = tuple((max(-low, 0), size - max(-high, 0), 1) for size, (low, high, _) in zip(dims, padding, strict=True))
    if any(start > limit for start, limit, _ in cut):
        return None
    padded = x
    if any(p != (0, 0, 0) for p in grown):
        padded = b.add("pad", [x, value], x.shape.with_dims(dims), padding=grown)
    return b.add("slice", [padded], i.shape, slice=cut)


@rule("pad", operand="pad")
def pad_of_pad(i: Instruction, b: Builder) -> Instruction | None:
    """pad(pad(x, v), v) == pad(x, v)

    zero = f32[] constant(0)
    a = f32[6] pad(f32[4] x, zero), padding=1_1
    ROOT r = f32[9] pad(a, zero), padding=1_2
    ->
    ROOT r = f32[9] pad(x, zero), padding=2_3
    """
    match i.operands:
        case [Instruction(opcode="pad", operands=[x, inner_value], attrs={"padding": inner}), value]:
            outer = i.attrs["padding"]
            if any(interior for _, _, interior in outer) or any(n < 0 for p in (*inner, *outer) for n in p):
                return None
            a, c = splat_value(inner_value), splat_value(value)
            if inner_value is not value and (a is None or c is None or a.tobytes() != c.tobytes()):
                return None
            both = tuple(
                (low + more, high + further, interior)
                for (low, high, interior), (more, further, _) in zip(inner, outer, strict=True)
            )
            return b.add("pad", [x, value], i.shape, padding=both)
    return None


@rule("pad")
def pad_of_same(i: Instruction, b: Builder) -> Instruction | None:
    """pad(broadcast(v), v) == broadcast(v)

    zeros = f32[4] broadcast(f32[] v), dimensions={}
    ROOT r = f32[6] pad(zeros, v), padding=1_1
    ->
    ROOT r = f32[6] broadcast(v), dimensions={}
    """
    x, value = i.operands
    if x.opcode == "broadcast" and x.operands[0] is value:
        return b.broadcast(value, i.shape.dims, ())
    a, c = splat_value(x), splat_value(value)
    same = a is not None and c is not None and np.asarray(a).tobytes() == np.asarray(c).tobytes()
    return b.broadcast(value, i.shape.dims, ()) if same else None


@rule("concatenate")
def concatenate_one(i: Instruction, b: Builder) -> Instruction | None:
    """concatenate(x) == x, and parts without elements go

    ROOT r = f32[3] concatenate(f32[3] x, f32[0] y), dimensions={0}
    ->
    ROOT x
    """
    parts = [x for x in i.operands if x.shape.num_elements] or i.operands[:1]
    if len(parts) == len(i.operands) and len(parts) > 1:
        return None
    if len(parts) == 1:
        return parts[0] if parts[0].shape.dims == i.shape.dims else None
    return b.add("concatenate", parts, i.shape, dimensions=i.attrs["dimensions"])


@rule("concatenate", operand="concatenate")
def concatenate_of_concatenate(i: Instruction, b: Builder) -> Instruction | None:
    """concatenate(concatenate(x, y), z) == concatenate(x, y, z)

    c = f32[5] concatenate(f32[2] x, f32[3] y), dimensions={0}
    ROOT r = f32[9] concatenate(c, f32[4] z), dimensions={0}
    ->
    ROOT r = f32[9] concatenate(x, y, z), dimensions={0}
    """
    dimensions = i.attrs["dimensions"]
    parts: list[Instruction] = []
    for x in i.operands:
        inner = x.opcode == "concatenate" and len(x.users) == 1 and x.attrs["dimensions"] == dimensions
        parts += x.operands if inner else [x]
    if len(parts) == len(i.operands):
        return None
    return b.add("concatenate", parts, i.shape, dimensions=dimensions)


@rule("concatenate", operand="slice")
def concatenate_of_slices(i: Instruction, b: Builder) -> Instruction | None:
    """concatenate(x[a:b], x[b:c]) == x[a:c]

    p = f32[2] slice(f32[6] x), slice={[1:3]}
    q = f32[1] slice(x), slice={[3:4]}
    ROOT r = f32[3] concatenate(p, q), dimensions={0}
    ->
    ROOT r = f32[3] slice(x), slice={[1:4]}
    """
    d = i.attrs["dimensions"][0]
    parts: list[Instruction] = [i.operands[0]]
    for before, after in pairwise(i.operands):
        joined = _joined(parts[-1], after, d, b) if before.opcode == after.opcode == "slice" else None
        if joined is None:
            parts.append(after)
        else:
            parts[-1] = joined
    if len(parts) == len(i.operands):
        return None
    return parts[0] if len(parts) == 1 else b.add("concatenate", parts, i.shape, dimensions=(d,))


def _joined(p: Instruction, q: Instruction, d: int, b: Builder) -> Instruction | None:
    """One slice for two of the same array that meet along dimension `d`."""
    if p.opcode != "slice" or p.operands[0] is not q.operands[0]:
        return None
    first: Slices = p.attrs["slice"]
    second: Slices = q.attrs["slice"]
    if any(a != c for n, (a, c) in enumerate(zip(first, second, strict=True)) if n != d):
        return None
    (start, limit, stride), (next_start, next_limit, next_stride) = first[d], second[d]
    if stride != 1 or next_stride != 1 or limit != next_start:
        return None
    dims = list(p.shape.dims)
    dims[d] += q.shape.dims[d]
    both = (*first[:d], (start, next_limit, 1), *first[d + 1 :])
    return b.add("slice", [p.operands[0]], p.shape.with_dims(tuple(dims)), slice=both)


@rule("concatenate", operand="broadcast")
def concatenate_of_broadcasts(i: Instruction, b: Builder) -> Instruction | None:
    """concatenate(broadcast(v), broadcast(v)) == broadcast(v) for a scalar v

    p = f32[2] broadcast(f32[] v), dimensions={}
    q = f32[3] broadcast(v), dimensions={}
    ROOT r = f32[5] concatenate(p, q), dimensions={0}
    ->
    ROOT r = f32[5] broadcast(v), dimensions={}
    """
    if any(x.opcode != "broadcast" or x.operands[0].shape.rank for x in i.operands):
        return None
    v = i.operands[0].operands[0]
    return b.broadcast(v, i.shape.dims, ()) if all(x.operands[0] is v for x in i.operands) else None
