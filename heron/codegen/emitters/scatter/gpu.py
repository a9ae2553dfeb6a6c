"""Scatters on the GPU: a thread for each element of the updates.

The result of several updates of one element must not depend on which thread comes first. Where the combiner's order
does not matter (sums of integers, minima, bits) updates are atomic; many to few elements are combined in shared memory
first (`gpu_private`). Elsewhere the first update of an element is its leader:
the leader's thread does all updates of that element in their order, the other threads nothing. Where indices are
sorted, updates of one element are neighbours; a few updates are compared with each other. Many unsorted ones are sorted
before, by the scatter-determinism-expander; left as they are (`Options.deterministic` off) they are atomic.

All this updates the operand in place. Where the operand is computed in the kernel, see `scatter_whole`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Region, SSAValue

from heron.analysis.fusion import scatter_order as facts
from heron.analysis.fusion.scatter import Scatter
from heron.analysis.indexing.expr import Expr
from heron.analysis.indexing.hlo_maps import Index, linearize
from heron.codegen.elemental.control import apply
from heron.codegen.emitters.base import Frame
from heron.codegen.emitters.loops import gpu_loops, plan_gpu
from heron.codegen.emitters.scatter import gpu_private, gpu_whole
from heron.codegen.emitters.scatter.code import combine, place_of
from heron.codegen.emitters.scatter.updates import Updates
from heron.codegen.ir.dialects.xla_gpu import AtomicRMWOp, YieldOp
from heron.codegen.ir.types import I1, INDEX
from heron.codegen.kernel import Kernel, Launch
from heron.errors import HeronError
from heron.hlo.ir.shape import scalar

#: emits what the thread of one update element does: its index, where it goes, the outputs
Write = Callable[[Index, Index, Sequence[SSAValue]], Sequence[SSAValue]]


def emit(frame: Frame, s: Scatter) -> Kernel:
    """The kernel. Raises GEN131 where a computed operand cannot be, GEN132 for many updates of several arrays in no
    order."""
    if any(operand.opcode != "parameter" for operand in s.operands):
        return gpu_whole.emit(frame, s)
    if not prod(s.sizes):
        return frame.finish(Launch(), "scatter", {"elements": "0"})
    if not s.i.unique_indices and gpu_private.fits(s):
        return gpu_private.emit(frame, s)
    form, write = _form(frame, s)
    e = frame.e
    vector_bits = s.updates[0].shape.element_type.bits if form in ("plain", "atomic") else 128
    plan = plan_gpu(prod(s.sizes), vector_bits, frame.target)

    def body(index: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        where, constraints = place_of(e, s, index)
        return e.loop([], carried, lambda _, tensors: write(index, where, tensors), lambda _: constraints)

    frame.outputs[:] = gpu_loops(frame, s.sizes, plan, frame.outputs, body)
    return frame.finish(plan.launch, "scatter", {"updates": form})


def _form(frame: Frame, s: Scatter) -> tuple[str, Write]:
    """The way in which updates of one element are kept from each other."""
    i, count = s.i, prod(s.batch_sizes)
    if i.unique_indices or count == 1:
        return "plain", partial(_plain, frame, s)
    if facts.order_is_free(i):
        return "atomic", partial(_atomic, frame, s)
    if i.indices_are_sorted and facts.has_whole_windows(i) and not i.input_batching_dims:
        return "sorted", _Runs(frame, s).write
    if count <= facts.FEW:
        return "few", _Few(frame, s).write
    if s.takes_update:
        return "plain", partial(_plain, frame, s)
    if len(s.operands) > 1:
        raise HeronError(
            "GEN132",
            f"a scatter of several arrays with a combiner, and {count} updates in no order",
            where=str(i),
            why="one atomic update changes one element",
            hint="the scatter-determinism-expander pass sorts them",
        )
    return "atomic", partial(_atomic, frame, s)


def _plain(frame: Frame, s: Scatter, index: Index, where: Index, tensors: Sequence[SSAValue]) -> Sequence[SSAValue]:
    return combine(frame, s, where, [frame.e.value(u, index) for u in s.updates], tensors)


def _atomic(frame: Frame, s: Scatter, index: Index, where: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
    e, shape = frame.e, scalar(s.i.shape.element_type)
    update = e.value(s.updates[0], index)
    block = Block(arg_types=[tensors[0].type.element_type])  # type: ignore[attr-defined]
    with e.region(block):
        current = e.unpack(iter(block.args), shape)
        result = apply(e, s.i.to_apply, [current, update])
        e.b.terminate(YieldOp, e.pack(result, shape))
    op = AtomicRMWOp(tensors[0], e.index_values(where), block)
    return [e.b.add(op).results[0]]


class _Leaders(Updates):
    """The thread of an element's first update does all its updates."""

    def number(self, index: Index) -> Expr:
        """The update that an element of the updates belongs to, as a variable."""
        number = self.e.simplify((linearize([index[d] for d in self.s.batch], self.s.batch_sizes),))[0]
        return self.e.variable(self.e.index_value(number), 0, self.count - 1)

    def current(self, where: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        """The elements as they are, packed."""
        return self.packed([self.e.extract(t, where) for t in tensors])


class _Runs(_Leaders):
    """Indices are sorted and windows meet whole or not at all: updates of one element follow each other."""

    def write(self, index: Index, where: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        e, b, s = self.e, self.e.b, self.s
        number = self.number(index)
        window = [index[d] for d in s.window]
        mine = self.vector(self.batch(number))
        value = e.index_value(number)
        before = b.op(arith.MaxSIOp, b.op(arith.SubiOp, value, b.integer(1)), b.integer(0))
        same = self.equal(mine, self.vector(self.batch(e.variable(before, 0, self.count - 1))))
        first = b.op(arith.OrIOp, b.cmpi("eq", value, b.integer(0)), b.negate(same))

        def all_updates() -> list[SSAValue]:
            packed = self.with_update(self.current(where, tensors), s.index(self.batch(number), tuple(window)))
            types = [INDEX, *(v.type for v in packed)]
            test, step = Block(arg_types=types), Block(arg_types=types)
            with e.region(test):
                # the last update again instead of one past the end
                place = b.op(arith.MinSIOp, test.args[0], b.integer(self.count - 1))
                theirs = self.vector(self.batch(e.variable(place, 0, self.count - 1)))
                inside = b.cmpi("slt", test.args[0], b.integer(self.count))
                b.terminate(scf.ConditionOp, [b.op(arith.AndIOp, inside, self.equal(mine, theirs)), *test.args])
            with e.region(step):
                at = s.index(self.batch(e.variable(step.args[0], 0, self.count - 1)), tuple(window))
                next_ = b.op(arith.AddiOp, step.args[0], b.integer(1))
                b.terminate(scf.YieldOp, [next_, *self.with_update(step.args[1:], at)])
            start = b.op(arith.AddiOp, value, b.integer(1))
            loop = scf.WhileOp.create(
                operands=[start, *packed], result_types=types, regions=[Region(test), Region(step)]
            )
            return self.stored(b.add(loop).results[1:], where, tensors)

        return e.guarded(first, tensors, all_updates)


class _Few(_Leaders):
    """Each thread looks at all updates for those whose window holds its element."""

    def write(self, index: Index, where: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        e, b = self.e, self.e.b
        number = self.number(index)
        place = tuple(e.variable(e.index_value(p), 0, n - 1) for p, n in zip(where, self.s.target_dims, strict=True))

        def earlier(variables: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
            holds, _ = self.holds(variables[0], place)
            return [b.op(arith.OrIOp, carried[0], holds)]

        found = e.loop([self.count], [b.integer(0, I1)], earlier, lambda v: [(v[0] - number, -self.count, -1)])
        first = b.op(arith.XOrIOp, found[0], b.integer(1, I1))

        def all_updates() -> list[SSAValue]:
            def update(variables: Index, packed: Sequence[SSAValue]) -> list[SSAValue]:
                holds, window = self.holds(variables[0], place)
                return e.guarded(
                    holds,
                    packed,
                    lambda: self.with_update(packed, self.s.index(self.batch(variables[0]), self.inside(window))),
                )

            packed = e.loop(
                [self.count], self.current(place, tensors), update, lambda v: [(v[0] - number, 0, self.count)]
            )
            return self.stored(packed, place, tensors)

        return e.guarded(first, tensors, all_updates)
