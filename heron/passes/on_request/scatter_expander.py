"""scatter-expander: scatters as loops of updates."""

from __future__ import annotations

from heron.analysis.fusion.scatter_order import update_count
from heron.hlo.facts import combiner, having
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.op import Trait
from heron.hlo.ir.shape import PRED_SCALAR
from heron.hlo.ir.types import PRED, S32, S64
from heron.passes.expand.model.index_lists import IndexList, index_list, starts_of
from heron.passes.expand.model.loops import State, counted
from heron.passes.expand.model.whole_arrays import apply_to_arrays, is_elementwise
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, convert, reshape, scalar, splat, transpose
from heron.passes.rewriting.expander import Expander, home
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ScatterExpander(Expander):
    """Combines one update after the other into its window; one that does not lie inside changes nothing.

    ``mode`` says which: ``all``; ``simple``, those of a single update, which need no loop; ``indeterminate``, those
    whose result depends on the order of updates: indices that may be equal, and sums or products of floats or a
    combiner of another kind. Combiners must consist of elementwise ops. No pipeline has it: kernels combine updates
    where they meet, and `scatter-determinism-expander` is for those whose order counts.

    add {
      a = s32[] parameter(0)
      b = s32[] parameter(1)
      ROOT c = s32[] add(a, b)
    }

    ROOT r = s32[4,2] scatter(s32[4,2] x, s32[3,1] at, s32[3,2] u), update_window_dims={1}, inserted_window_dims={0},
      scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
    ->
    ...
    """

    name = "scatter-expander"
    opcodes = frozenset({"scatter"})
    mode: str = "all"

    def matches(self, i: Instruction) -> bool:
        updates = i.operands[-1].shape
        if not updates.num_elements or not i.operands[0].shape.num_elements or not is_elementwise(i.to_apply):
            return False
        match self.mode:
            case "simple":
                return update_count(i) == 1
            case "indeterminate":
                return not _is_determined(i)
        return True

    def expand(self, i: Instruction) -> Instruction:
        number = len(i.operands) // 2
        arrays, starts, updates = i.operands[:number], i.operands[number], i.operands[number + 1 :]
        # signed and wide enough to be compared with sizes
        starts = convert(starts, S64 if starts.shape.element_type.bits > 32 or _is_u32(starts) else S32)
        listed = index_list(
            starts,
            i.index_vector_dim,
            i.scatter_dims_to_operand_dims,
            i.input_batching_dims,
            i.scatter_indices_batching_dims,
        )
        rank = updates[0].shape.rank
        order = [*(d for d in range(rank) if d not in i.update_window_dims), *i.update_window_dims]
        window = [updates[0].shape.dims[d] for d in i.update_window_dims]
        lines = [reshape(transpose(u, order), (update_count(i), *window)) for u in updates]

        def step(k: Instruction, state: State) -> State:
            found = _updated(i, k, state[: len(arrays)], state[len(arrays)], state[len(arrays) + 1 :], listed)
            return [*found, *state[len(arrays) :]]

        state = counted(home(i), "scatter", update_count(i), step, [*arrays, listed.indices, *lines])
        results = state[:number]
        return home(i).add("tuple", results, like=i) if i.shape.is_tuple else results[0]


def _updated(
    i: Instruction, k: Instruction, arrays: State, indices: Instruction, lines: State, listed: IndexList
) -> State:
    """The arrays after update k."""
    c, dims = home(k), arrays[0].shape.dims
    gone = {*i.inserted_window_dims, *i.input_batching_dims}
    inside = iter(lines[0].shape.dims[1:])
    sizes = tuple(1 if d in gone else next(inside) for d in range(len(dims)))
    at = starts_of(indices, k, listed.dims, len(dims))
    fits = scalar(c, PRED, True)
    for d in listed.dims:
        room = dims[d] - sizes[d]
        fits = fits & at[d].ge(scalar(c, at[d].shape.element_type, 0))
        fits = fits & at[d].le(scalar(c, at[d].shape.element_type, room))
    old = [c.add("dynamic-slice", [a, *at], dynamic_slice_sizes=sizes) for a in arrays]
    given: State = []
    for line in lines:
        zeros = [splat(c, k.shape, 0) for _ in line.shape.dims[1:]]
        one = c.add("dynamic-slice", [line, k, *zeros], dynamic_slice_sizes=(1, *line.shape.dims[1:]))
        given.append(reshape(one, sizes))
    new = apply_to_arrays(c, i.to_apply, [*old, *given], like=i)
    mask = c.add("broadcast", [fits], array(PRED, sizes), dimensions=()) if sizes else fits
    kept = [c.add("select", [mask, n, o]) for n, o in zip(new, old, strict=True)]
    assert fits.shape is PRED_SCALAR
    return [c.add("dynamic-update-slice", [a, n, *at]) for a, n in zip(arrays, kept, strict=True)]


def _is_determined(i: Instruction) -> bool:
    """Whether updates in any order give the same."""
    if i.unique_indices or update_count(i) == 1:
        return True
    opcode = combiner(i.to_apply)
    t = i.operands[0].shape.element_type
    return opcode is not None and (t.is_integer or t is PRED or opcode in having(Trait.EXTREMUM))


def _is_u32(x: Instruction) -> bool:
    return x.shape.element_type.is_unsigned and x.shape.element_type.bits == 32
