"""Slices and updates at computed places."""

from __future__ import annotations

from heron.analysis.values.splat import is_splat, splat_value
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import Shape
from heron.passes.rewriting.dimensions import squeezed
from heron.passes.rewriting.rules import Builder, rule


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


def _zeroed(i: Instruction, part: Instruction, whole: Instruction, first: int, b: Builder) -> list[Instruction] | None:
    """The operands with 0 for each start that could be nothing else, None when all are so."""
    operands = list(i.operands)
    if any(s.shape.rank for s in operands[first:]):
        return None
    zero: Instruction | None = None
    for d, (size, full) in enumerate(zip(part.shape.dims, whole.shape.dims, strict=True)):
        if size == full and not is_splat(operands[first + d], 0):
            zero = zero or b.scalar(operands[first].shape.element_type, 0)
            operands[first + d] = zero
    return None if zero is None else operands


@rule("dynamic-slice")
def dynamic_slice_whole_dimension(i: Instruction, b: Builder) -> Instruction | None:
    """dynamic-slice(x, m, n) that takes all along a dimension starts at 0 there, since starts are clamped

    ROOT r = f32[2,4] dynamic-slice(f32[8,4] x, s32[] m, s32[] n), dynamic_slice_sizes={2,4}
    ->
    zero = s32[] constant(0)
    ROOT r = f32[2,4] dynamic-slice(x, m, zero), dynamic_slice_sizes={2,4}
    """
    operands = _zeroed(i, i, i.operands[0], 1, b)
    return None if operands is None else b.like(i, operands, i.shape)


@rule("dynamic-update-slice")
def update_whole_dimension(i: Instruction, b: Builder) -> Instruction | None:
    """dynamic-update-slice(x, u, m, n) that takes all along a dimension starts at 0 there, since starts are clamped

    ROOT r = f32[8,4] dynamic-update-slice(f32[8,4] x, f32[2,4] u, s32[] m, s32[] n)
    ->
    zero = s32[] constant(0)
    ROOT r = f32[8,4] dynamic-update-slice(x, u, m, zero)
    """
    operands = _zeroed(i, i.operands[1], i, 2, b)
    return None if operands is None else b.like(i, operands, i.shape)


@rule("dynamic-slice", operand="broadcast")
def dynamic_slice_of_broadcast(i: Instruction, b: Builder) -> Instruction | None:
    """dynamic-slice(broadcast(x), ...) == broadcast(dynamic-slice(x, ...))

    y = f32[3,8] broadcast(f32[8] x), dimensions={1}
    ROOT r = f32[1,2] dynamic-slice(y, s32[] m, s32[] n), dynamic_slice_sizes={1,2}
    ->
    s = f32[2] dynamic-slice(x, n), dynamic_slice_sizes={2}
    ROOT r = f32[1,2] broadcast(s), dimensions={1}
    """
    y, *starts = i.operands
    if y.opcode != "broadcast" or any(s.shape.rank for s in starts):
        return None
    dimensions = y.attrs["dimensions"]
    sizes = tuple([i.shape.dims[d] for d in dimensions])
    part = _dynamic_slice(y.operands[0], [starts[d] for d in dimensions], sizes, b)
    return b.broadcast(part, i.shape.dims, dimensions)


def _dynamic_slice(x: Instruction, starts: list[Instruction], sizes: tuple[int, ...], b: Builder) -> Instruction:
    if x.shape.dims == sizes:
        return x
    return b.add("dynamic-slice", [x, *starts], x.shape.with_dims(sizes), dynamic_slice_sizes=sizes)


@rule("dynamic-slice", operand="transpose")
def dynamic_slice_of_transpose(i: Instruction, b: Builder) -> Instruction | None:
    """dynamic-slice(transpose(x), ...) == transpose(dynamic-slice(x, ...))

    y = f32[4,8] transpose(f32[8,4] x), dimensions={1,0}
    ROOT r = f32[2,3] dynamic-slice(y, s32[] m, s32[] n), dynamic_slice_sizes={2,3}
    ->
    s = f32[3,2] dynamic-slice(x, n, m), dynamic_slice_sizes={3,2}
    ROOT r = f32[2,3] transpose(s), dimensions={1,0}
    """
    y, *starts = i.operands
    if y.opcode != "transpose" or any(s.shape.rank for s in starts):
        return None
    permutation = y.attrs["dimensions"]
    places = [permutation.index(d) for d in range(len(permutation))]
    sizes = tuple([i.shape.dims[p] for p in places])
    return b.transpose(_dynamic_slice(y.operands[0], [starts[p] for p in places], sizes, b), permutation)


@rule("dynamic-slice", operand="reshape")
def dynamic_slice_of_squeezed(i: Instruction, b: Builder) -> Instruction | None:
    """dynamic-slice(reshape(x), ...) == reshape(dynamic-slice(x, ...)) where the reshape adds or drops sizes of 1

    y = f32[8,1,4] reshape(f32[8,4] x)
    ROOT r = f32[2,1,3] dynamic-slice(y, s32[] m, s32[] n, s32[] k), dynamic_slice_sizes={2,1,3}
    ->
    s = f32[2,3] dynamic-slice(x, m, k), dynamic_slice_sizes={2,3}
    ROOT r = f32[2,1,3] reshape(s)
    """
    y, *starts = i.operands
    if y.opcode != "reshape" or any(s.shape.rank for s in starts):
        return None
    x = y.operands[0]
    if squeezed(x.shape.dims) != squeezed(y.shape.dims) or not starts or i.shape.num_elements == 0:
        return None
    real = iter([d for d, size in enumerate(y.shape.dims) if size != 1])
    zero: Instruction | None = None
    inner: list[Instruction] = []
    sizes = []
    for size in x.shape.dims:
        if size == 1:
            zero = zero or b.scalar(starts[0].shape.element_type, 0)
            inner.append(zero)
            sizes.append(1)
        else:
            d = next(real)
            inner.append(starts[d])
            sizes.append(i.shape.dims[d])
    return b.reshape(_dynamic_slice(x, inner, tuple(sizes), b), i.shape.dims)


@rule("dynamic-slice", operand="iota")
def dynamic_slice_of_iota(i: Instruction, b: Builder) -> Instruction | None:
    """dynamic-slice(iota(), n) of one element == n clamped

    it = s32[8] iota(), iota_dimension=0
    ROOT r = s32[1] dynamic-slice(it, s32[] n), dynamic_slice_sizes={1}
    ->
    low = s32[] constant(0)
    high = s32[] constant(7)
    c = s32[] clamp(low, n, high)
    ROOT r = s32[1] reshape(c)
    """
    it, n = i.operands[0], i.operands[-1]
    if it.opcode != "iota" or it.shape.rank != 1 or i.shape.dims != (1,) or n.shape.rank:
        return None
    t, last = n.shape.element_type, it.shape.dims[0] - 1
    if not i.shape.element_type.is_integer or last >= 1 << min(t.bits, i.shape.element_type.bits) - 1:
        return None
    clamped = b.add("clamp", [b.scalar(t, 0), n, b.scalar(t, last)], n.shape)
    return b.reshape(b.convert(clamped, i.shape.element_type), (1,))


@rule("dynamic-slice", operand="dynamic-slice")
def dynamic_slice_again(i: Instruction, b: Builder) -> Instruction | None:
    """dynamic-slice(dynamic-slice(x, m), n) == dynamic-slice(x, m + n), with both clamped as before

    y = f32[4] dynamic-slice(f32[8] x, s32[] m), dynamic_slice_sizes={4}
    ROOT r = f32[2] dynamic-slice(y, s32[] n), dynamic_slice_sizes={2}
    ->
    zero = s32[] constant(0)
    four = s32[] constant(4)
    a = s32[] clamp(zero, m, four)
    zero2 = s32[] constant(0)
    two = s32[] constant(2)
    c = s32[] clamp(zero2, n, two)
    k = s32[] add(a, c)
    ROOT r = f32[2] dynamic-slice(x, k), dynamic_slice_sizes={2}
    """
    y, *inner = i.operands
    if y.opcode != "dynamic-slice" or len(y.users) > 1:
        return None
    x, *outer = y.operands
    starts = _summed((x.shape, y.shape, i.shape), outer, inner, b)
    return None if starts is None else _dynamic_slice(x, starts, i.shape.dims, b)


def _summed(
    shapes: tuple[Shape, Shape, Shape], outer: list[Instruction], inner: list[Instruction], b: Builder
) -> list[Instruction] | None:
    """The start of the last shape in the first, from its start `inner` in the middle one, which starts at `outer`."""
    whole, part, small = (s.dims for s in shapes)
    if any(s.shape.rank for s in (*outer, *inner)):
        return None
    starts = []
    for d, (m, n) in enumerate(zip(outer, inner, strict=True)):
        t = m.shape.element_type
        if whole[d] >= 1 << min(t.bits, n.shape.element_type.bits) - 1:
            return None
        if is_splat(m, 0) and is_splat(n, 0):
            starts.append(m)
            continue
        a = _clamped(m, whole[d] - part[d], b)
        c = b.convert(_clamped(n, part[d] - small[d], b), t)
        starts.append(b.add("add", [a, c], m.shape))
    return starts


def _clamped(n: Instruction, last: int, b: Builder) -> Instruction:
    t = n.shape.element_type
    return b.add("clamp", [b.scalar(t, 0), n, b.scalar(t, last)], n.shape)


@rule("dynamic-update-slice", operand="dynamic-update-slice")
def update_part_of_part(i: Instruction, b: Builder) -> Instruction | None:
    """dynamic-update-slice(x, dynamic-update-slice(dynamic-slice(x, m), u, n), m) == dynamic-update-slice(x, u, m + n)

    y = f32[4] dynamic-slice(f32[8] x, s32[] m), dynamic_slice_sizes={4}
    z = f32[4] dynamic-update-slice(y, f32[2] u, s32[] n)
    ROOT r = f32[8] dynamic-update-slice(x, z, m)
    ->
    zero = s32[] constant(0)
    four = s32[] constant(4)
    a = s32[] clamp(zero, m, four)
    zero2 = s32[] constant(0)
    two = s32[] constant(2)
    c = s32[] clamp(zero2, n, two)
    k = s32[] add(a, c)
    ROOT r = f32[8] dynamic-update-slice(x, u, k)
    """
    x, z, *outer = i.operands
    if z.opcode != "dynamic-update-slice" or z.operands[0].opcode != "dynamic-slice":
        return None
    y, u, *inner = z.operands
    if y.operands != [x, *outer]:
        return None
    starts = _summed((x.shape, y.shape, u.shape), outer, inner, b)
    return None if starts is None else b.add("dynamic-update-slice", [x, u, *starts], i.shape)


@rule("dynamic-update-slice", operand="broadcast")
def update_of_same(i: Instruction, b: Builder) -> Instruction | None:
    """dynamic-update-slice(broadcast(v), u, c) == pad(u, v) for a scalar v, at c clamped

    c = s32[] constant(3)
    x = f32[8] broadcast(f32[] v), dimensions={}
    ROOT r = f32[8] dynamic-update-slice(x, f32[2] u, c)
    ->
    ROOT r = f32[8] pad(u, v), padding=3_3
    """
    x, u, *starts = i.operands
    if x.opcode != "broadcast" or x.operands[0].shape.rank or any(s.shape.rank for s in starts):
        return None
    padding = []
    for start, size, whole in zip(starts, u.shape.dims, x.shape.dims, strict=True):
        value = 0 if size == whole else splat_value(start)
        if value is None:
            return None
        low = min(max(int(value), 0), whole - size)
        padding.append((low, whole - size - low, 0))
    return b.add("pad", [u, x.operands[0]], i.shape, padding=tuple(padding))
