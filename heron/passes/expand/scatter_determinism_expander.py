"""scatter-determinism-expander: many updates that may meet are sorted by where they go."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from heron.analysis.fusion.scatter_order import FEW, order_is_free, takes_update, update_count, writes_one_value
from heron.errors import HeronError
from heron.hlo.ir import shape
from heron.hlo.ir.computation import Computation
from heron.hlo.ir.instruction import Instruction
from heron.hlo.ir.module import Module
from heron.hlo.ir.shape import PRED_SCALAR
from heron.hlo.ir.types import PRED, S32, S64, U32, ElementType
from heron.passes.framework.base import Constraint, Pass
from heron.passes.framework.context import PassContext
from heron.passes.framework.registry import register
from heron.passes.rewriting.building import array, convert, inline, reshape, splat, transpose
from heron.passes.simplify.scatter_simplifier import is_simple
from heron.records import dataclass


@register
@dataclass(frozen=True)
class ScatterDeterminismExpander(Pass):
    """Sorts a scatter's updates by place, those of one place in their order, so that a GPU needs no atomics.

    The first of several threads to update an element is chance; with floats the sum depends on it. Sorted, updates of
    one element are neighbours, and one thread does them in turn. Left alone are scatters whose updates never meet
    (``unique_indices``), whose order cannot matter (sums of integers, elements that one value replaces), sorted ones,
    and those of few updates, which threads compare themselves. With `Options.deterministic` off only those are sorted
    that no atomic update can do: several arrays at once, elements of more than 64 bits.

    Updates whose window does not lie inside the operand go to the end, past every place. Windows that could overlap in
    part are taken apart along the indexed dimensions first.

    add {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT s = f32[] add(a, b)
    }

    ROOT r = f32[8] scatter(f32[8] x, s32[300,1] n, f32[300,1] u), update_window_dims={1}, inserted_window_dims={},
      scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add
    ->
    before {
      a = u32[] parameter(0)
      b = u32[] parameter(1)
      ROOT less = pred[] compare(a, b), direction=LT
    }

    c = s32[300,1] slice(n), slice={[0:300], [0:1]}
    i = s32[300] reshape(c)
    zero = s32[] constant(0)
    low = s32[300] broadcast(zero), dimensions={}
    above = pred[300] compare(i, low), direction=GE
    seven = s32[] constant(7)
    high = s32[300] broadcast(seven), dimensions={}
    below = pred[300] compare(i, high), direction=LE
    inside = pred[300] and(above, below)
    end = s32[] constant(8)
    ends = s32[300] broadcast(end), dimensions={}
    place = s32[300] select(inside, i, ends)
    major = u32[300] convert(place)
    count = u32[] constant(300)
    counts = u32[300] broadcast(count), dimensions={}
    scaled = u32[300] multiply(major, counts)
    order = u32[300] iota(), iota_dimension=0
    key = u32[300] add(scaled, order)
    sorted = u32[300] sort(key), dimensions={0}, to_apply=before
    quotient = u32[300] divide(sorted, counts)
    places = s32[300] convert(quotient)
    matrix = s32[300,1] reshape(places)
    rest = u32[300] remainder(sorted, counts)
    numbers = s32[300] convert(rest)
    rows = s32[300,1] reshape(numbers)
    v = f32[300,1] gather(u, rows), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1,
      slice_sizes={1,1}
    ROOT r = f32[8] scatter(x, matrix, v), update_window_dims={1}, inserted_window_dims={},
      scatter_dims_to_operand_dims={0}, index_vector_dim=1, indices_are_sorted=true, to_apply=add
    """

    name = "scatter-determinism-expander"
    constraints = (
        Constraint("scatter-simplifier", "scatter-determinism-expander", "it sorts scatters of that form", needed=True),
    )

    def run(self, module: Module, ctx: PassContext) -> bool:
        changed = _taken_out(module, ctx)
        found = [i for i in module.instructions() if _is_sorted_here(i, ctx)]
        for i in found:
            _Sorted(i).replace()
        return changed or bool(found)


def _is_sorted_here(i: Instruction, ctx: PassContext) -> bool:
    return i.opcode == "scatter" and _may_meet(i) and (ctx.options.deterministic or _has_no_atomic(i))


def _taken_out(module: Module, ctx: PassContext) -> bool:
    """Puts the bodies of fusions that came with such a scatter in their places: no kernel that scatters also sorts."""
    changed = False
    for c in module.post_order():  # callees first: a fusion in a fusion may hold it
        for i in [i for i in c.instructions if i.opcode == "fusion"]:
            if any(_is_sorted_here(inner, ctx) for inner in i.calls.instructions):
                inline(i, i.calls, list(i.operands))
                changed = True
    if changed:
        module.remove_unused_computations()
    return changed


def _may_meet(i: Instruction) -> bool:
    """Whether some updates may meet, in an order that matters and is not known."""
    if i.unique_indices or i.indices_are_sorted or not is_simple(i):
        return False
    if order_is_free(i) or writes_one_value(i):
        return False
    return update_count(i) > FEW and bool(i.operands[0].shape.num_elements) and bool(i.operands[-1].shape.num_elements)


def _has_no_atomic(i: Instruction) -> bool:
    several = len(i.operands) > 3 and not takes_update(i)
    return several or i.operands[0].shape.element_type.bits > 64


class _Sorted:
    """Makes the sorted form of a scatter that has the simplifier's."""

    def __init__(self, i: Instruction) -> None:
        assert i.parent is not None
        self.c, self.i = i.parent, i
        count = len(i.operands) // 2
        self.arrays, self.indices, self.updates = i.operands[:count], i.operands[count], i.operands[count + 1 :]
        self.dims, self.window = self.arrays[0].shape.dims, self.updates[0].shape.dims[1:]
        #: indexed dimensions, and those of them along which windows are longer than 1
        self.indexed = i.scatter_dims_to_operand_dims
        self.long = tuple(d for d in self.indexed if self.window[d] > 1)
        self.places = prod(self.dims[d] for d in self.indexed)
        t = self.indices.shape.element_type
        fits = t.bits < 32 or t is S32
        self.type: ElementType = S32 if fits and max(self.places, *self.dims) < 1 << 31 else S64

    def replace(self) -> None:
        """Puts the sorted scatter in place of the other."""
        c, i = self.c, self.i
        places, numbers = self._in_order(self._places())
        matrix = self._index_matrix(places)
        rows = reshape(numbers, (numbers.shape.dims[0], 1))
        updates = [self._gathered(u, rows) for u in self.updates]
        attrs = {**i.attrs, "indices_are_sorted": True}
        c.replace_with(i, "scatter", [*self.arrays, matrix, *updates], i.shape, **attrs)

    def _in_order(self, places: Instruction) -> tuple[Instruction, Instruction]:
        """The places in order, and the numbers of the updates that go there.

        Place and number are sorted as one, `place * n + number`: no two are equal, and one array is moved, not two.
        Raises PASS025 for more than 64 bits hold.
        """
        c, i, (n,) = self.c, self.i, places.shape.dims
        if (self.places + 1) * n >= 1 << 63:
            what, why = f"the updates of '{i.name}' are too many to sort", f"{n} updates of {self.places} places"
            raise HeronError("PASS025", what, where=str(i), why=why, hint="split the scatter")
        both = array(U32 if (self.places + 1) * n <= 1 << 32 else S64, [n])
        assert c.module is not None
        count = splat(c, both, n)
        order = c.add("iota", [], both, like=i, iota_dimension=0)
        high = c.add("multiply", [convert(places, both.element_type), count], both, like=i)
        key = c.add("add", [high, order], both, like=i)
        comparator = c.module.add_computation(_comparator(both.element_type))
        line = c.add("sort", [key], both, like=i, dimensions=(0,), to_apply=comparator)
        place = c.add("divide", [line, count], both, like=i)
        number = c.add("remainder", [line, count], both, like=i)
        return convert(place, self.type), convert(number, S32 if n < 1 << 31 else S64)

    def _places(self) -> Instruction:
        """For each update the row-major place of its index among the indexed dimensions; past the end when it is
        dropped."""
        c, i, n = self.c, self.i, self.indices.shape.dims[0]
        indices = self.indices
        if indices.shape.element_type is not self.type:
            indices = c.add("convert", [indices], array(self.type, indices.shape.dims), like=i)
        columns = []
        for k in range(len(self.indexed)):
            window = ((0, n, 1), (k, k + 1, 1))
            column = c.add("slice", [indices], array(self.type, [n, 1]), like=i, slice=window)
            columns.append(reshape(column, (n,)))
        inside = self._all_inside(columns)
        sizes = (n, *(self.window[d] for d in self.long))
        spread = [self._spread(column, sizes) for column in columns]
        for k, d in enumerate(self.long):
            steps = c.add("iota", [], array(self.type, sizes), like=i, iota_dimension=k + 1)
            at = self.indexed.index(d)
            spread[at] = c.add("add", [spread[at], steps], steps.shape, like=i)
        key = spread[0]
        for column, d in zip(spread[1:], self.indexed[1:], strict=True):
            size = splat(c, key.shape, self.dims[d])
            key = c.add("add", [c.add("multiply", [key, size], key.shape, like=i), column], key.shape, like=i)
        end = splat(c, key.shape, self.places)
        key = c.add("select", [self._spread(inside, sizes), key, end], key.shape, like=i)
        return reshape(key, (prod(sizes),))

    def _all_inside(self, columns: Sequence[Instruction]) -> Instruction:
        """Whether the window of each update lies inside the operand."""
        c, result = self.c, None
        for column, d in zip(columns, self.indexed, strict=True):
            flags = array(PRED, column.shape.dims)
            for value, direction in ((0, "GE"), (self.dims[d] - self.window[d], "LE")):
                limit = splat(c, column.shape, value)
                test = c.add("compare", [column, limit], flags, like=self.i, direction=direction)
                result = test if result is None else c.add("and", [result, test], flags, like=self.i)
        assert result is not None
        return result

    def _spread(self, x: Instruction, sizes: Sequence[int]) -> Instruction:
        if x.shape.dims == tuple(sizes):
            return x
        return self.c.add("broadcast", [x], array(x.shape.element_type, sizes), like=self.i, dimensions=(0,))

    def _index_matrix(self, places: Instruction) -> Instruction:
        """The index vectors of places: the first component of one past the end is past the end too."""
        c, (n,) = self.c, places.shape.dims
        if len(self.indexed) == 1:
            return reshape(places, (n, 1))
        columns: list[Instruction] = []
        stride = self.places
        for k, d in enumerate(self.indexed):
            stride //= self.dims[d]
            column = c.add("divide", [places, splat(c, places.shape, stride)], places.shape, like=self.i)
            if k:
                column = c.add("remainder", [column, splat(c, places.shape, self.dims[d])], places.shape, like=self.i)
            columns.append(reshape(column, (n, 1)))
        matrix = array(self.type, (n, len(columns)))
        return c.add("concatenate", columns, matrix, like=self.i, dimensions=(1,))

    def _gathered(self, updates: Instruction, rows: Instruction) -> Instruction:
        """The updates in sorted order, windows taken apart along the indexed dimensions."""
        if self.long:
            kept = [d for d in range(len(self.window)) if d not in self.long]
            updates = transpose(updates, (0, *(d + 1 for d in self.long), *(d + 1 for d in kept)))
        window = tuple(1 if d in self.long else size for d, size in enumerate(self.window))
        updates = reshape(updates, (rows.shape.dims[0], *window))
        return self.c.add(
            "gather",
            [updates, rows],
            updates.shape,
            like=self.i,
            offset_dims=tuple(range(1, len(window) + 1)),
            collapsed_slice_dims=(0,),
            start_index_map=(0,),
            index_vector_dim=1,
            slice_sizes=(1, *window),
        )


def _comparator(t: ElementType) -> Computation:
    """Whether the first of two comes before the second."""
    c = Computation("before")
    a, b = (c.add_parameter(n, shape.scalar(t)) for n in range(2))
    c.root = c.add("compare", [a, b], PRED_SCALAR, direction="LT")
    return c
