"""Slices: of what was padded, moved, repeated or joined before."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.passes.rewriting.dimensions import squeezed
from heron.passes.rewriting.rules import Builder, rule

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


@rule("slice")
def slice_with_idle_stride(i: Instruction, b: Builder) -> Instruction | None:
    """slice(x) with a stride that leads beyond its limit == slice(x) of one element

    ROOT r = f32[1] slice(f32[8] x), slice={[2:5:4]}
    ->
    ROOT r = f32[1] slice(x), slice={[2:3]}
    """
    part: Slices = i.attrs["slice"]
    plain = tuple(
        [(at, at + 1, 1) if step > 1 and at < end <= at + step else (at, end, step) for at, end, step in part]
    )
    return None if plain == part else b.add("slice", [i.operands[0]], i.shape, slice=plain)


@rule("slice", operand="pad")
def slice_of_padding(i: Instruction, b: Builder) -> Instruction | None:
    """slice(pad(x, v)) == broadcast(v) where it takes nothing of x

    p = f32[9] pad(f32[4] x, f32[] v), padding=3_2
    ROOT r = f32[2] slice(p), slice={[0:2]}
    ->
    ROOT r = f32[2] broadcast(v), dimensions={}
    """
    match i.operands:
        case [Instruction(opcode="pad", operands=[_, value], attrs={"padding": padding}) as p]:
            for (start, limit, _), (low, high, _), size in zip(i.attrs["slice"], padding, p.shape.dims, strict=True):
                if limit <= low or start >= size - high:
                    return b.broadcast(value, i.shape.dims, ())
    return None


@rule("slice", operand="pad")
def slice_that_undoes_pad(i: Instruction, b: Builder) -> Instruction | None:
    """slice(pad(x, v)) == x where it takes just x's elements, those between left out

    p = f32[9] pad(f32[4] x, f32[] v), padding=1_1_1
    ROOT r = f32[4] slice(p), slice={[1:8:2]}
    ->
    ROOT x
    """
    match i.operands:
        case [Instruction(opcode="pad", operands=[x, _], attrs={"padding": padding})]:
            if x.shape.dims != i.shape.dims:
                return None
            for (start, _, stride), (low, _, interior), size in zip(
                i.attrs["slice"], padding, x.shape.dims, strict=True
            ):
                if start != low or (size > 1 and stride != interior + 1):
                    return None
            return x
    return None


@rule("slice", operand="reverse")
def slice_of_reverse(i: Instruction, b: Builder) -> Instruction | None:
    """slice(reverse(x)) == reverse(slice(x)) from the other end

    y = f32[8] reverse(f32[8] x), dimensions={0}
    ROOT r = f32[2] slice(y), slice={[1:4:2]}
    ->
    s = f32[2] slice(x), slice={[4:7:2]}
    ROOT r = f32[2] reverse(s), dimensions={0}
    """
    match i.operands:
        case [Instruction(opcode="reverse", operands=[x], attrs={"dimensions": dimensions})]:
            part = list(i.attrs["slice"])
            for d in dimensions:
                start, _, stride = part[d]
                count, size = i.shape.dims[d], x.shape.dims[d]
                if count == 0:
                    return None
                last = size - 1 - (start + (count - 1) * stride)
                part[d] = (last, size - start, stride)
            s = b.add("slice", [x], i.shape, slice=tuple(part))
            return b.add("reverse", [s], i.shape, dimensions=dimensions)
    return None


@rule("slice", operand="reshape")
def slice_of_reshape(i: Instruction, b: Builder) -> Instruction | None:
    """slice(reshape(x)) == reshape(slice(x)) where whole rows are taken, along dimension 0 of both

    y = f32[4,6] reshape(f32[8,3] x)
    ROOT r = f32[2,6] slice(y), slice={[1:3], [0:6]}
    ->
    s = f32[4,3] slice(x), slice={[2:6], [0:3]}
    ROOT r = f32[2,6] reshape(s)
    """
    y = i.operands[0]
    if y.opcode != "reshape" or i.shape.num_elements == 0 or not y.shape.rank:
        return None
    x, (first, *others) = y.operands[0], i.attrs["slice"]
    if (
        not x.shape.rank
        or first[2] != 1
        or any(part != (0, size, 1) for part, size in zip(others, y.shape.dims[1:], strict=True))
    ):
        return None
    row, inner = y.shape.num_elements // y.shape.dims[0], x.shape.num_elements // x.shape.dims[0]
    if first[0] * row % inner or first[1] * row % inner or squeezed(x.shape.dims) == squeezed(y.shape.dims):
        return None
    part = [(first[0] * row // inner, first[1] * row // inner, 1), *((0, size, 1) for size in x.shape.dims[1:])]
    return b.reshape(b.slice(x, part), i.shape.dims)


@rule("slice", operand="concatenate")
def slice_of_some_parts(i: Instruction, b: Builder) -> Instruction | None:
    """slice(concatenate(x, y, z)) == slice(concatenate(x, y)) where it takes nothing of z

    c = f32[9] concatenate(f32[2] x, f32[3] y, f32[4] z), dimensions={0}
    ROOT r = f32[3] slice(c), slice={[1:4]}
    ->
    d = f32[5] concatenate(x, y), dimensions={0}
    ROOT r = f32[3] slice(d), slice={[1:4]}
    """
    whole = i.operands[0]
    if whole.opcode != "concatenate" or i.shape.num_elements == 0:
        return None
    d = whole.attrs["dimensions"][0]
    start, limit, stride = i.attrs["slice"][d]
    offset, before, parts = 0, 0, []
    for x in whole.operands:
        size = x.shape.dims[d]
        if offset + size <= start:
            before += size
        elif offset < limit:
            parts.append(x)
        offset += size
    if len(parts) < 2 or len(parts) == len(whole.operands):
        return None
    dims = list(whole.shape.dims)
    dims[d] = sum(x.shape.dims[d] for x in parts)
    some = b.add("concatenate", parts, whole.shape.with_dims(tuple(dims)), dimensions=(d,))
    part = list(i.attrs["slice"])
    part[d] = (start - before, limit - before, stride)
    return b.slice(some, part)


@rule("slice", operand="dot")
def slice_of_dot(i: Instruction, b: Builder) -> Instruction | None:
    """slice(dot(x, y)) == dot(slice(x), slice(y)) where the dot has no other use

    d = f32[4,6] dot(f32[4,8] x, f32[8,6] y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    ROOT r = f32[2,6] slice(d), slice={[1:3], [0:6]}
    ->
    s = f32[2,8] slice(x), slice={[1:3], [0:8]}
    ROOT r = f32[2,6] dot(s, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    """
    d = i.operands[0]
    if d.opcode != "dot" or len(d.operands) != 2 or len(d.users) > 1:
        return None
    parts, at = iter(i.attrs["slice"]), 0
    batch = [next(parts) for _ in d.lhs_batch_dims]
    operands = []
    for x, batch_dims, contracting in (
        (d.operands[0], d.lhs_batch_dims, d.lhs_contracting_dims),
        (d.operands[1], d.rhs_batch_dims, d.rhs_contracting_dims),
    ):
        taken = []
        for at, size in enumerate(x.shape.dims):
            if at in batch_dims:
                taken.append(batch[batch_dims.index(at)])
            else:
                taken.append((0, size, 1) if at in contracting else next(parts))
        operands.append(b.slice(x, taken))
    return b.like(d, operands, i.shape)


@rule("slice", operand="reduce-window")
def last_of_scan(i: Instruction, b: Builder) -> Instruction | None:
    """slice(reduce-window(x)) of the one window that holds all of a dimension == reshape(reduce(x))

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    w = f32[2,8] reduce-window(f32[2,8] x, f32[] init), window={size=1x8 pad=0_0x7_0}, to_apply=sum
    ROOT r = f32[2,1] slice(w), slice={[0:2], [7:8]}
    ->
    s = f32[2] reduce(x, init), dimensions={1}, to_apply=sum
    ROOT r = f32[2,1] reshape(s)
    """
    w = i.operands[0]
    if w.opcode != "reduce-window" or len(w.operands) != 2 or len(w.users) > 1:
        return None
    x, init = w.operands
    gone = []
    for d, (dim, (start, limit, stride), size) in enumerate(zip(w.window, i.attrs["slice"], x.shape.dims, strict=True)):
        if dim.stride != 1 or dim.base_dilation != 1 or dim.window_dilation != 1 or stride != 1 or dim.pad_high:
            return None
        if dim.size == 1 and dim.pad_low == 0 and (start, limit) == (0, size):
            continue
        if dim.size != size or dim.pad_low != size - 1 or (start, limit) != (size - 1, size):
            return None
        gone.append(d)
    if not gone:
        return None
    dims = tuple(size for d, size in enumerate(x.shape.dims) if d not in gone)
    s = b.add("reduce", [x, init], w.shape.with_dims(dims), dimensions=tuple(gone), to_apply=w.to_apply)
    return b.reshape(s, i.shape.dims)
