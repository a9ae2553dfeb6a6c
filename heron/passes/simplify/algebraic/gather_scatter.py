"""Gathers and scatters of a single window."""

from __future__ import annotations

from math import prod

from heron.hlo.facts import combiner
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.shape import PRED_SCALAR
from heron.hlo.ir.types import PRED
from heron.passes.rewriting.rules import Builder, rule

#: arrays up to this size are chosen from rather than gathered from
_FEW = 4


@rule("gather")
def gather_one(i: Instruction, b: Builder) -> Instruction | None:
    """gather(x, n) with one index vector == dynamic-slice(x, n)

    ROOT r = f32[4] gather(f32[8,4] x, s32[1] n),
      offset_dims={0}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=0, slice_sizes={1,4}
    ->
    f = s32[] reshape(n)
    zero = s32[] constant(0)
    s = f32[1,4] dynamic-slice(x, f, zero), dynamic_slice_sizes={1,4}
    ROOT r = f32[4] reshape(s)
    """
    indices = i.operands[1]
    if _vectors(indices, i.index_vector_dim) != 1 or i.operand_batching_dims:
        return None
    x = i.operands[0]
    sizes = tuple(i.slice_sizes)
    starts, _ = _starts(indices, i.start_index_map, x.shape.rank, b)
    cut = b.add("dynamic-slice", [x, *starts], x.shape.with_dims(sizes), dynamic_slice_sizes=sizes)
    return b.reshape(cut, i.shape.dims)


@rule("scatter")
def scatter_one(i: Instruction, b: Builder) -> Instruction | None:
    """scatter(x, n, u) with one index vector == x with its window at n updated, if that lies within x

    replace {
      a = s32[] parameter(0)
      ROOT b = s32[] parameter(1)
    }

    ROOT r = s32[8] scatter(s32[8] x, s32[1] n, s32[2] u), update_window_dims={0}, inserted_window_dims={},
      scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply=replace
    ->
    start = s32[] reshape(n)
    here = s32[2] dynamic-slice(x, start), dynamic_slice_sizes={2}
    zero = s32[] constant(0)
    low = pred[] compare(start, zero), direction=GE
    last = s32[] constant(6)
    high = pred[] compare(start, last), direction=LE
    both = pred[] and(low, high)
    inside = pred[2] broadcast(both), dimensions={}
    new = s32[2] select(inside, u, here)
    ROOT r = s32[8] dynamic-update-slice(x, new, start)
    """
    if len(i.operands) != 3 or i.input_batching_dims:
        return None
    x, indices, updates = i.operands
    if _vectors(indices, i.index_vector_dim) != 1 or updates.shape.num_elements == 0:
        return None
    op = combiner(i.to_apply)
    replaces = i.to_apply.root.opcode == "parameter" and i.to_apply.root.attrs["number"] == 1
    if op is None and not replaces:
        return None
    starts, components = _starts(indices, i.scatter_dims_to_operand_dims, x.shape.rank, b)
    window = iter([updates.shape.dims[d] for d in i.update_window_dims])
    sizes = tuple(1 if d in i.inserted_window_dims else next(window) for d in range(x.shape.rank))
    here = b.add("dynamic-slice", [x, *starts], x.shape.with_dims(sizes), dynamic_slice_sizes=sizes)
    new = b.reshape(updates, sizes)
    if op is not None:
        new = b.add(op, [here, new], here.shape)
    inside: list[Instruction] = []
    for n, d in enumerate(i.scatter_dims_to_operand_dims):
        t = components[n].shape.element_type
        low = b.add("compare", [components[n], b.scalar(t, 0)], PRED_SCALAR, direction="GE")
        inside.append(low)
        last = x.shape.dims[d] - sizes[d]
        if last < 1 << (t.bits - t.is_signed):
            inside.append(b.add("compare", [components[n], b.scalar(t, last)], PRED_SCALAR, direction="LE"))
    if inside:
        known = inside[0]
        for other in inside[1:]:
            known = b.add("and", [known, other], PRED_SCALAR)
        new = b.add("select", [b.broadcast(known, sizes, ()), new, here], here.shape)
    return b.add("dynamic-update-slice", [x, new, *starts], i.shape)


def _vectors(indices: Instruction, vector_dim: int) -> int:
    """The number of index vectors."""
    return prod(size for d, size in enumerate(indices.shape.dims) if d != vector_dim)


def _starts(
    indices: Instruction, places: tuple[int, ...], rank: int, b: Builder
) -> tuple[list[Instruction], list[Instruction]]:
    """A start for each of `rank` dimensions, 0 where the one index vector says nothing; and the vector's components."""
    flat = b.reshape(indices, (len(places),))
    components: list[Instruction] = []
    for n in range(len(places)):
        part = flat.shape.with_dims((1,))
        one = flat if flat.shape is part else b.add("slice", [flat], part, slice=((n, n + 1, 1),))
        components.append(b.reshape(one, ()))
    zero = None if len(places) == rank else b.scalar(indices.shape.element_type, 0)
    starts = [components[places.index(d)] if d in places else zero for d in range(rank)]
    return [s for s in starts if s is not None], components


@rule("gather")
def gather_from_nothing(i: Instruction, b: Builder) -> Instruction | None:
    """gather(x, n) of an array without elements == 0

    ROOT r = f32[3,0] gather(f32[8,0] x, s32[3] n),
      offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,0}
    ->
    zero = f32[] constant(0)
    ROOT r = f32[3,0] broadcast(zero), dimensions={}
    """
    return b.splat(i.shape, 0) if i.operands[0].shape.num_elements == 0 else None


@rule("gather")
def gather_from_one(i: Instruction, b: Builder) -> Instruction | None:
    """gather(x, n) of an array of one element == broadcast(x)

    ROOT r = f32[3] gather(f32[1] x, s32[3] n),
      offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}
    ->
    v = f32[] reshape(x)
    ROOT r = f32[3] broadcast(v), dimensions={}
    """
    x = i.operands[0]
    if x.shape.num_elements != 1 or i.shape.num_elements == 0:
        return None
    return b.broadcast(b.reshape(x, ()), i.shape.dims, ())


@rule("gather")
def gather_from_few(i: Instruction, b: Builder) -> Instruction | None:
    """gather(x, n) of at most four elements == n >= 1 ? x[1] : x[0], and so on

    ROOT r = f32[3] gather(f32[2] x, s32[3] n),
      offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}
    ->
    s = f32[1] slice(x), slice={[0:1]}
    v = f32[] reshape(s)
    first = f32[3] broadcast(v), dimensions={}
    t = f32[1] slice(x), slice={[1:2]}
    w = f32[] reshape(t)
    second = f32[3] broadcast(w), dimensions={}
    one = s32[] constant(1)
    ones = s32[3] broadcast(one), dimensions={}
    from_one = pred[3] compare(n, ones), direction=GE
    ROOT r = f32[3] select(from_one, second, first)
    """
    x, n = i.operands
    if x.shape.rank != 1 or not 2 <= x.shape.dims[0] <= _FEW or i.index_vector_dim != n.shape.rank:
        return None
    if i.collapsed_slice_dims != (0,) or n.shape.dims != i.shape.dims:
        return None

    def element(at: int) -> Instruction:
        return b.broadcast(b.reshape(b.slice(x, [(at, at + 1, 1)]), ()), i.shape.dims, ())

    result = element(0)
    for at in range(1, x.shape.dims[0]):
        from_here = b.add("compare", [n, b.splat(n.shape, at)], i.shape.with_type(PRED), direction="GE")
        result = b.add("select", [from_here, element(at), result], i.shape)
    return result


@rule("gather", operand="pad")
def gather_of_pad(i: Instruction, b: Builder) -> Instruction | None:
    """gather(pad(x), n) == pad(gather(x, n)) where only dimensions that are taken whole are padded

    zero = f32[] constant(0)
    y = f32[8,6] pad(f32[8,4] x, zero), padding=0_0x1_1
    ROOT r = f32[3,6] gather(y, s32[3] n),
      offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,6}
    ->
    g = f32[3,4] gather(x, n),
      offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}
    ROOT r = f32[3,6] pad(g, zero), padding=0_0x1_1
    """
    match i.operands:
        case [Instruction(opcode="pad", operands=[x, value], attrs={"padding": padding}) as y, n]:
            dropped = {*i.collapsed_slice_dims, *i.operand_batching_dims}
            kept = [d for d in range(x.shape.rank) if d not in dropped]
            places = dict(zip(kept, i.offset_dims, strict=True))
            sizes, dims = list(i.slice_sizes), list(i.shape.dims)
            result: list[tuple[int, int, int]] = [(0, 0, 0)] * i.shape.rank
            for d, p in enumerate(padding):
                if p == (0, 0, 0):
                    continue
                if d not in places or i.slice_sizes[d] != y.shape.dims[d]:
                    return None
                sizes[d] = dims[places[d]] = x.shape.dims[d]
                result[places[d]] = p
            attrs = {**i.attrs, "slice_sizes": tuple(sizes)}
            g = b.add("gather", [x, n], i.shape.with_dims(tuple(dims)), **attrs)
            return b.add("pad", [g, value], i.shape, padding=tuple(result))
    return None


@rule("scatter")
def scatter_of_nothing(i: Instruction, b: Builder) -> Instruction | None:
    """scatter(x, n, u) == x when u has no elements

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT c = f32[] add(a, b)
    }

    ROOT r = f32[8] scatter(f32[8] x, s32[0] n, f32[0] u), update_window_dims={}, inserted_window_dims={0},
      scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum
    ->
    ROOT x
    """
    count = len(i.operands) // 2
    if any(u.shape.num_elements for u in i.operands[count + 1 :]):
        return None
    return i.operands[0] if count == 1 else b.add("tuple", i.operands[:count])


@rule("scatter")
def scatter_everywhere(i: Instruction, b: Builder) -> Instruction | None:
    """scatter(x, n, u) of one update that is all of x, whose index has no components == map(x, u)

    sum {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT c = f32[] add(a, b)
    }

    ROOT r = f32[8] scatter(f32[8] x, s32[0] n, f32[8] u), update_window_dims={0}, inserted_window_dims={},
      scatter_dims_to_operand_dims={}, index_vector_dim=0, to_apply=sum
    ->
    ROOT r = f32[8] map(x, u), dimensions={0}, to_apply=sum
    """
    if len(i.operands) != 3 or i.operands[1].shape.num_elements or i.scatter_dims_to_operand_dims:
        return None
    x, _, u = i.operands
    if u.shape.bare is not x.shape.bare or i.update_window_dims != tuple(range(x.shape.rank)):
        return None
    return b.add("map", [x, u], i.shape, dimensions=tuple(range(x.shape.rank)), to_apply=i.to_apply)
