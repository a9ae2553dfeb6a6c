"""Scatters on the GPU that compute the whole result: each thread finds the updates of its own elements.

For an operand that the kernel computes, or that would have to be copied because others need it as it is: one pass over
the result instead of one that fills it and one that updates it, and no two threads write one element. Updates are done
in their order. A few are all looked at; where indices are sorted, the first update of an element is found by bisection,
and the others follow it. A thread has some consecutive elements, so that it looks for their updates once.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Region, SSAValue

from heron.analysis.fusion import scatter_order as facts
from heron.analysis.fusion.scatter import Scatter
from heron.analysis.indexing.expr import Expr
from heron.analysis.indexing.hlo_maps import Index, delinearize
from heron.codegen.elemental.movement import scalar_to_index
from heron.codegen.emitters.base import Frame
from heron.codegen.emitters.loops import for_, plan_gpu
from heron.codegen.emitters.scatter.updates import Updates
from heron.codegen.ir.types import INDEX
from heron.codegen.kernel import Kernel, Launch
from heron.errors import HeronError

#: updates of one element that are loaded at a time
_TOGETHER = 4


def emit(frame: Frame, s: Scatter) -> Kernel:
    """The kernel. Raises GEN131 where an element's updates cannot be found."""
    how = facts.finds_updates(s.i)
    if not how:
        raise HeronError(
            "GEN131",
            "a GPU scatter cannot update an operand that the same kernel computes",
            where=str(s.i),
            why=f"each element would have to check all {prod(s.batch_sizes)} updates",
            hint="compute the operand in a kernel before, or sort the updates",
        )
    e, dims = frame.e, s.target_dims
    if not prod(dims):
        return frame.finish(Launch(), "scatter", {"elements": "0"})
    bits = max(o.shape.element_type.bits for o in s.operands)
    row = dims[-1] if _rows_are_whole(s) else 1
    plan = plan_gpu(prod(dims), bits, frame.target, row=row)
    threads = prod(dims) // plan.vector
    thread = e.variable(frame.block_id(), 0, plan.grid - 1) * plan.block
    thread = e.simplify((thread + e.variable(frame.thread_id(), 0, plan.block - 1),))[0]

    def body(_: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        element = e.variable(e.index_value(e.simplify((thread * plan.vector,))[0]), 0, prod(dims) - plan.vector)
        return _Elements(frame, s, element, plan.vector).stored_in(tensors, how)

    frame.outputs[:] = e.loop([], frame.outputs, body, lambda _: [(thread, 0, threads - 1)])
    return frame.finish(plan.launch, "scatter", {"updates": how, "operand": "computed"})


def _rows_are_whole(s: Scatter) -> bool:
    """Whether an update has all elements of a row along the last dimension, or none."""
    last = len(s.target_dims) - 1
    i = s.i
    if last < 0 or last in (*i.scatter_dims_to_operand_dims, *i.inserted_window_dims, *(i.input_batching_dims or ())):
        return False
    return s.sizes[s.window[-1]] == s.target_dims[last]


class _Elements(Updates):
    """The consecutive elements of one thread, from number `first` on."""

    def __init__(self, frame: Frame, s: Scatter, first: Expr, count: int) -> None:
        super().__init__(frame, s)
        e, dims = frame.e, s.target_dims
        if count == 1:
            places = e.simplify(delinearize(first, dims))
            self.places = [tuple(e.variable(e.index_value(p), 0, n - 1) for p, n in zip(places, dims, strict=True))]
            return
        row, start = e.simplify((first // dims[-1], first % dims[-1]))
        outer = e.simplify(delinearize(row, dims[:-1]))
        head = tuple(e.variable(e.index_value(p), 0, n - 1) for p, n in zip(outer, dims[:-1], strict=True))
        start = e.variable(e.index_value(start), 0, dims[-1] - count)
        self.places = [(*head, start + k) for k in range(count)]

    def stored_in(self, tensors: Sequence[SSAValue], how: str) -> list[SSAValue]:
        """The tensors with these elements, updates and all."""
        values = [v for p in self.places for v in self.packed([self.e.value(o, p) for o in self.s.operands])]
        if prod(self.s.sizes):
            values = self._by_looking(values) if how == facts.ALL else self._by_bisection(values)
        result, width = list(tensors), len(values) // len(self.places)
        for n, place in enumerate(self.places):
            result = self.stored(values[n * width : (n + 1) * width], place, result)
        return result

    def _updated(self, values: Sequence[SSAValue], number: Expr, window: Sequence[Expr]) -> list[SSAValue]:
        """All elements with update `number`, the first of them standing at `window` in it."""
        found: list[SSAValue] = []
        width, batch = len(values) // len(self.places), self.batch(number)
        for n in range(len(self.places)):
            at = (*window[:-1], window[-1] + n) if n else tuple(window)
            index = self.e.simplify(self.s.index(batch, at))
            found += self.with_update(values[n * width : (n + 1) * width], index)
        return found

    def _by_looking(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        """Each update in turn, if its window holds these elements."""

        def look(variables: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
            holds, window = self.holds(variables[0], self.places[0])
            return self.e.guarded(
                holds, carried, lambda: self._updated(carried, variables[0], self._first_offsets(window))
            )

        return self.e.loop([self.count], values, look)

    def _first_offsets(self, window: Sequence[Expr]) -> list[Expr]:
        """The place of the first element in a window that holds it, as variables of the remaining ranges."""
        e, more = self.e, len(self.places) - 1
        sizes = [self.s.sizes[d] for d in self.s.window]
        if sizes and more:
            sizes[-1] -= more
        values = e.index_values(e.simplify(tuple(window)))
        return [e.variable(v, 0, n - 1) for v, n in zip(values, sizes, strict=True)]

    # -- sorted indices ----------------------------------------------------------------------------------------------
    def _by_bisection(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        """The run of updates whose index vector is this place; several at a time as long as there are as many."""
        e, b, i = self.e, self.e.b, self.s.i
        place = self.places[0]
        mine = e.index_values([place[d] for d in i.scatter_dims_to_operand_dims])
        gone = set(i.inserted_window_dims)
        window = [p - p if d in i.scatter_dims_to_operand_dims else p for d, p in enumerate(place) if d not in gone]
        window = list(e.simplify(tuple(window)))
        carried: list[SSAValue] = [self._first(mine), *values]
        for step in (_TOGETHER, 1) if self.count >= _TOGETHER else (1,):
            types = [v.type for v in carried]
            test, body = Block(arg_types=types), Block(arg_types=types)
            with e.region(test):
                last = b.op(arith.AddiOp, test.args[0], b.integer(step - 1))
                inside = b.cmpi("slt", last, b.integer(self.count))
                same = self._equal_at(b.op(arith.MinSIOp, last, b.integer(self.count - 1)), mine)
                b.terminate(scf.ConditionOp, [b.op(arith.AndIOp, inside, same), *test.args])
            with e.region(body):
                number = e.variable(body.args[0], 0, self.count - step)
                new = list(body.args[1:])
                for n in range(step):
                    new = self._updated(new, number + n, window)
                b.terminate(scf.YieldOp, [b.op(arith.AddiOp, body.args[0], b.integer(step)), *new])
            loop = scf.WhileOp.create(operands=carried, result_types=types, regions=[Region(test), Region(body)])
            carried = list(b.add(loop).results)
        return carried[1:]

    def _first(self, mine: Sequence[SSAValue]) -> SSAValue:
        """The number of updates with an index vector before `mine`."""
        b = self.e.b
        bits = self.count.bit_length()

        def halve(_: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            before, step = carried
            more = b.op(arith.AddiOp, before, step)
            last = b.op(arith.MinSIOp, b.op(arith.SubiOp, more, b.integer(1)), b.integer(self.count - 1))
            smaller = b.op(arith.AndIOp, b.cmpi("sle", more, b.integer(self.count)), self._less_at(last, mine))
            return [b.select(smaller, more, before), b.op(arith.ShRUIOp, step, b.integer(1))]

        start: list[SSAValue] = [b.integer(0), b.integer(1 << (bits - 1))]
        return for_(self.frame, b.integer(0), b.integer(bits), start, halve)[0]

    def _vector_at(self, number: SSAValue) -> list[SSAValue]:
        e = self.e
        t = self.s.indices.shape.element_type
        found = self.vector(self.batch(e.variable(number, 0, self.count - 1)))
        return [v if v.type == INDEX else scalar_to_index(e, v, t) for v in found]

    def _equal_at(self, number: SSAValue, mine: Sequence[SSAValue]) -> SSAValue:
        return self.equal(self._vector_at(number), mine)

    def _less_at(self, number: SSAValue, mine: Sequence[SSAValue]) -> SSAValue:
        """Whether the index vector of an update comes before `mine`, first components first."""
        b = self.e.b
        result: SSAValue | None = None
        for theirs, own in reversed(list(zip(self._vector_at(number), mine, strict=True))):
            less = b.cmpi("slt", theirs, own)
            if result is not None:
                less = b.op(arith.OrIOp, less, b.op(arith.AndIOp, b.cmpi("eq", theirs, own), result))
            result = less
        assert result is not None
        return result
