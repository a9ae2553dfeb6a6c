"""gather-expander: gathers as loops of slices."""

from __future__ import annotations

from heron.hlo.ir.instruction import Instruction
from heron.passes.expand.model.index_lists import index_list, starts_of
from heron.passes.expand.model.loops import State, counted
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, reshape, splat, transpose
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class GatherExpander(Expander):
    """Takes one slice after the other, each moved until it lies inside as dynamic-slice does.

    ``mode`` says which: ``all``, or ``simple``, those of a single slice, which need no loop. No pipeline has it: a
    kernel reads each element of a gather where it is, with no loop.

    ROOT r = f32[2] gather(f32[4,2] x, s32[1] at), offset_dims={0}, collapsed_slice_dims={0},
      start_index_map={0}, index_vector_dim=0, slice_sizes={1,2}
    ->
    list = s32[1,1] reshape(at)
    first = s32[1,1] slice(list), slice={[0:1], [0:1]}
    row = s32[] reshape(first)
    zero = s32[] constant(0)
    part = f32[1,2] dynamic-slice(x, row, zero), dynamic_slice_sizes={1,2}
    ROOT r = f32[2] reshape(part)
    """

    name = "gather-expander"
    opcodes = frozenset({"gather"})
    mode: str = "all"

    def matches(self, i: Instruction) -> bool:
        if not i.shape.num_elements:
            return False
        return self.mode == "all" or _count(i) == 1

    def expand(self, i: Instruction) -> Instruction:
        x, starts = i.operands
        gone = {*i.collapsed_slice_dims, *i.operand_batching_dims}
        window = [n for d, n in enumerate(i.slice_sizes) if d not in gone]
        listed = index_list(
            starts, i.index_vector_dim, i.start_index_map, i.operand_batching_dims, i.start_indices_batching_dims
        )
        count = _count(i)

        def part(k: Instruction | int, x: Instruction, indices: Instruction) -> Instruction:
            at = starts_of(indices, k, listed.dims, x.shape.rank)
            return home(x).add("dynamic-slice", [x, *at], dynamic_slice_sizes=i.slice_sizes)

        if count == 1:
            return reshape(part(0, x, listed.indices), i.shape.dims)

        def step(k: Instruction, state: State) -> State:
            x, indices, found = state
            piece = reshape(part(k, x, indices), (1, *window))
            zeros = [splat(home(k), k.shape, 0) for _ in window]
            return [x, indices, home(k).add("dynamic-update-slice", [found, piece, k, *zeros])]

        start = splat(home(i), array(x.shape.element_type, (count, *window)), 0)
        found = counted(home(i), "gather", count, step, [x, listed.indices, start])[-1]
        batch = [n for d, n in enumerate(starts.shape.dims) if d != i.index_vector_dim]
        wide = reshape(found, (*batch, *window))
        inside = iter(range(len(batch), wide.shape.rank))
        outside = iter(range(len(batch)))
        return transpose(wide, [next(inside if d in i.offset_dims else outside) for d in range(wide.shape.rank)])


def _count(i: Instruction) -> int:
    """The number of slices."""
    starts, vector = i.operands[1].shape, i.index_vector_dim
    length = starts.dims[vector] if vector < starts.rank else 1
    if length:
        return starts.num_elements // length
    rest = [n for d, n in enumerate(starts.dims) if d != vector]
    return array(starts.element_type, rest).num_elements
