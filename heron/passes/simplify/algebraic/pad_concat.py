"""Pads and concatenates."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from heron.analysis.values.splat import splat_value
from heron.hlo.ir.instruction import Instruction
from heron.passes.rewriting.dimensions import common_groups
from heron.passes.rewriting.rules import Builder, rule

Slices = tuple[tuple[int, int, int], ...]


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


@rule("pad")
def pad_of_empty(i: Instruction, b: Builder) -> Instruction | None:
    """pad(x, v) of no elements == broadcast(v)

    ROOT r = f32[3] pad(f32[0] x, f32[] v), padding=1_2
    ->
    ROOT r = f32[3] broadcast(v), dimensions={}
    """
    x, value = i.operands
    return None if x.shape.num_elements else b.broadcast(value, i.shape.dims, ())


@rule("pad")
def pad_between_one(i: Instruction, b: Builder) -> Instruction | None:
    """pad(x, v) between the elements of a dimension of size 1 == pad(x, v) around it

    ROOT r = f32[3] pad(f32[1] x, f32[] v), padding=1_1_2
    ->
    ROOT r = f32[3] pad(x, v), padding=1_1
    """
    x, padding = i.operands[0], i.attrs["padding"]
    plain = tuple(
        [
            (low, high, 0 if size == 1 else within)
            for (low, high, within), size in zip(padding, x.shape.dims, strict=True)
        ]
    )
    return None if plain == padding else b.add("pad", i.operands, i.shape, padding=plain)


@rule("pad", operand="broadcast")
def pad_of_broadcast(i: Instruction, b: Builder) -> Instruction | None:
    """pad(broadcast(x), v) == broadcast(pad(x, v)) where x has every padded dimension

    y = f32[3,4] broadcast(f32[4] x), dimensions={1}
    ROOT r = f32[3,6] pad(y, f32[] v), padding=0_0x1_1
    ->
    p = f32[6] pad(x, v), padding=1_1
    ROOT r = f32[3,6] broadcast(p), dimensions={1}
    """
    match i.operands:
        case [Instruction(opcode="broadcast", operands=[x], attrs={"dimensions": dimensions}) as y, value]:
            padding = i.attrs["padding"]
            padded = [d for d, p in enumerate(padding) if p != (0, 0, 0)]
            if len(y.users) > 1 or not padded or any(d not in dimensions for d in padded):
                return None
            if len(dimensions) == i.shape.rank:
                return None
            dims = tuple([i.shape.dims[d] for d in dimensions])
            p = b.add("pad", [x, value], x.shape.with_dims(dims), padding=tuple([padding[d] for d in dimensions]))
            return b.broadcast(p, i.shape.dims, dimensions)
    return None


@rule("reshape", operand="pad")
def reshape_of_pad(i: Instruction, b: Builder) -> Instruction | None:
    """reshape(pad(x, v)) == pad(reshape(x), v) where the reshape keeps the padded dimensions

    y = f32[6,9] pad(f32[6,8] x, f32[] v), padding=0_0x1_0
    ROOT r = f32[2,3,9] reshape(y)
    ->
    z = f32[2,3,8] reshape(x)
    ROOT r = f32[2,3,9] pad(z, v), padding=0_0x0_0x1_0
    """
    match i.operands:
        case [Instruction(opcode="pad", operands=[x, value], attrs={"padding": padding}) as y] if len(y.users) == 1:
            dims, moved = list(i.shape.dims), [(0, 0, 0)] * i.shape.rank
            for old, new in common_groups(y.shape.dims, i.shape.dims):
                if all(padding[d] == (0, 0, 0) for d in old):
                    continue
                if len(old) != 1 or len(new) != 1:
                    return None
                dims[new[0]], moved[new[0]] = x.shape.dims[old[0]], padding[old[0]]
            return b.add("pad", [b.reshape(x, dims), value], i.shape, padding=tuple(moved))
    return None


@rule("concatenate", operand="broadcast")
def concatenate_with_scalar(i: Instruction, b: Builder) -> Instruction | None:
    """concatenate(x, broadcast(v)) == pad(x, v) for a scalar v

    y = f32[3] broadcast(f32[] v), dimensions={}
    ROOT r = f32[8] concatenate(f32[5] x, y), dimensions={0}
    ->
    ROOT r = f32[8] pad(x, v), padding=0_3
    """
    if len(i.operands) != 2:
        return None
    d = i.attrs["dimensions"][0]
    for n, y in enumerate(i.operands):
        if y.opcode != "broadcast" or y.operands[0].shape.rank:
            continue
        padding = [(0, 0, 0)] * i.shape.rank
        padding[d] = (y.shape.dims[d], 0, 0) if n == 0 else (0, y.shape.dims[d], 0)
        return b.add("pad", [i.operands[1 - n], y.operands[0]], i.shape, padding=tuple(padding))
    return None


@rule("concatenate")
def concatenate_same(i: Instruction, b: Builder) -> Instruction | None:
    """concatenate(x, x, x) along a dimension of size 1 == broadcast(x)

    ROOT r = f32[4,3] concatenate(f32[4,1] x, x, x), dimensions={1}
    ->
    y = f32[4] reshape(x)
    ROOT r = f32[4,3] broadcast(y), dimensions={0}
    """
    x, d = i.operands[0], i.attrs["dimensions"][0]
    if len(i.operands) < 2 or x.shape.dims[d] != 1 or any(o is not x for o in i.operands):
        return None
    kept = [n for n in range(i.shape.rank) if n != d]
    return b.broadcast(b.reshape(x, [x.shape.dims[n] for n in kept]), i.shape.dims, kept)
