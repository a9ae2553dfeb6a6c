"""Gathers and scatters of a single window."""

from __future__ import annotations

from math import prod

from heron.hlo.instruction import Instruction
from heron.hlo.shape import PRED_SCALAR
from heron.passes.building import combiner
from heron.passes.simplify.algebraic.rules import Builder, rule


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
    """How many index vectors there are."""
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
