"""Updates in the GPU's scatter kernels: those of a place, and their effect on an element."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from heron.analysis.fusion.scatter import Scatter
from heron.analysis.indexing.expr import Const, Expr
from heron.analysis.indexing.hlo_maps import Index, delinearize
from heron.codegen.elemental import Value
from heron.codegen.emitters.base import Frame
from heron.codegen.emitters.scatter.code import combined, place_of
from heron.codegen.ir.types import I1
from heron.hlo.ir.shape import scalar


class Updates:
    """The ``count`` updates of a scatter, by number, while a kernel is emitted."""

    def __init__(self, frame: Frame, s: Scatter) -> None:
        self.frame, self.e, self.s = frame, frame.e, s
        self.count = prod(s.batch_sizes)
        self.shapes = [scalar(o.shape.element_type) for o in s.operands]

    def batch(self, number: Expr) -> Index:
        """The place of an update in the batch dimensions."""
        return self.e.simplify(delinearize(number, self.s.batch_sizes))

    # -- elements, packed: plain scalars of all operands -----------------------------------------------------------
    def packed(self, elements: Sequence[Value]) -> list[SSAValue]:
        """One element of each operand, packed."""
        return [v for value, shape in zip(elements, self.shapes, strict=True) for v in self.e.pack(value, shape)]

    def unpacked(self, packed: Sequence[SSAValue]) -> list[Value]:
        """The inverse of `packed`."""
        rest = iter(packed)
        return [self.e.unpack(rest, shape) for shape in self.shapes]

    def with_update(self, packed: Sequence[SSAValue], index: Index) -> list[SSAValue]:
        """The elements with the update at `index`, packed."""
        values = [self.e.value(u, index) for u in self.s.updates]
        return self.packed(combined(self.frame, self.s, self.unpacked(packed), values))

    def stored(self, packed: Sequence[SSAValue], where: Index, tensors: Sequence[SSAValue]) -> list[SSAValue]:
        """The tensors with the elements at `where`."""
        return [self.e.insert(v, t, where) for v, t in zip(self.unpacked(packed), tensors, strict=True)]

    # -- any windows -----------------------------------------------------------------------------------------------
    def holds(self, number: Expr, place: Index) -> tuple[SSAValue, list[Expr]]:
        """Whether the window of an update lies inside the operand and holds `place`, and which place of it that is."""
        e, s = self.e, self.s
        start, constraints = place_of(e, s, s.index(self.batch(number), (Const(0),) * len(s.window)))
        gone = {*s.i.inserted_window_dims, *(s.i.input_batching_dims or ())}
        sizes = iter([s.sizes[d] for d in s.window])
        offsets: list[Expr] = []
        for d, (p, first) in enumerate(zip(place, start, strict=True)):
            offset, size = p - first, 1 if d in gone else next(sizes)
            constraints.append((offset, 0, size - 1))
            if d not in gone:
                offsets.append(offset)
        holds = e.holds(constraints)
        return e.b.integer(1, I1) if holds is None else holds, offsets

    def inside(self, window: Sequence[Expr]) -> Index:
        """Offsets in a window that are known to lie in it, as variables of that range."""
        e = self.e
        values = e.index_values(e.simplify(tuple(window)))
        sizes = [self.s.sizes[d] for d in self.s.window]
        return tuple(e.variable(v, 0, n - 1) for v, n in zip(values, sizes, strict=True))

    # -- index vectors -----------------------------------------------------------------------------------------------
    def vector(self, batch: Index) -> list[SSAValue]:
        """The index vector of an update."""
        s = self.s
        found: list[SSAValue] = []
        for component in range(len(s.i.scatter_dims_to_operand_dims)):
            read = list(batch)
            if s.i.index_vector_dim < s.indices.shape.rank:
                read.insert(s.i.index_vector_dim, Const(component))
            found.append(self.e.scalar(s.indices, self.e.simplify(tuple(read))))
        return found

    def equal(self, one: Sequence[SSAValue], two: Sequence[SSAValue]) -> SSAValue:
        """Whether two index vectors are the same."""
        b = self.e.b
        tests = [b.cmpi("eq", x, y) for x, y in zip(one, two, strict=True)]
        result = tests[0]
        for test in tests[1:]:
            result = b.op(arith.AndIOp, result, test)
        return result
