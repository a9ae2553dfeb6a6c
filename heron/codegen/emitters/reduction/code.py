"""The code of a reduction: its elements joined to accumulators, its results stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from functools import cached_property
from itertools import pairwise
from math import prod

from xdsl.ir import SSAValue

from heron.analysis.cost.code_size import code_limit
from heron.analysis.fusion.cuts import joined_at
from heron.analysis.fusion.fusion import Fusion
from heron.analysis.fusion.reduction import MOVES, Axis, Reduction
from heron.analysis.indexing.expr import Const, Expr
from heron.analysis.indexing.hlo_maps import Index, delinearize, to_memory
from heron.codegen.elemental import FunctionEmitter
from heron.codegen.elemental.reducer import Reducer
from heron.codegen.emitters.base import Frame
from heron.codegen.emitters.partial_sums import Body
from heron.codegen.emitters.reducers import merged, split, starts
from heron.hlo.ir.instruction import Instruction
from heron.records import dataclass
from heron.targets import Target

#: instructions of a kernel whose code may be repeated for several rows
SMALL = 12
#: elements that are worth a loop for each operand of a concatenation
MANY = 1024
#: bytes of arrays that no cache near a core holds
LARGE = 4 << 20


@dataclass(frozen=True)
class ReductionCode(Reduction):
    """A reduction and the code of it.

    ``reducers``: how each of its reduces combines; ``keys``: whether extrema of floats accumulate as integers.
    """

    keys: bool = False

    @staticmethod
    def of(reduction: Reduction, keys: bool) -> ReductionCode:
        return ReductionCode(*(getattr(reduction, f.name) for f in fields(Reduction)), keys=keys)

    @cached_property
    def reducers(self) -> tuple[Reducer, ...]:
        return tuple(Reducer.in_parts(i, self.keys) for i in self.reduces)

    def start(self, frame: Frame) -> list[SSAValue]:
        """Initial accumulators of all reduces."""
        return starts(frame.e, self.reducers)

    def split(self, values: Sequence[SSAValue]) -> list[Sequence[SSAValue]]:
        """The accumulators of each reduce."""
        return split(self.reducers, values)

    @property
    def accumulators(self) -> int:
        """The number of accumulators."""
        return sum(len(r.types) for r in self.reducers)

    def merge(self, frame: Frame, a: Sequence[SSAValue], b: Sequence[SSAValue]) -> list[SSAValue]:
        """Two partial results of all reduces as one."""
        return merged(frame.e, self.reducers, a, b)

    def element(self, frame: Frame, index: Index, carried: Sequence[SSAValue]) -> list[SSAValue]:
        """One element of the arrays joined to the accumulators; side outputs, carried after them, stored."""
        e, n = frame.e, self.accumulators
        index = self.source(index)
        elements = [[e.value(a, index) for a in r.arrays] for r in self.reducers]
        outputs = [frame.fusion.outputs[k] for k in self.side]
        values = [o.of(e.value(o.instruction, index)) for o in outputs]
        results: list[SSAValue] = []
        for r, accumulators, read in zip(self.reducers, self.split(carried[:n]), elements, strict=True):
            results += r.step(e, accumulators, read)
        stores = zip(values, carried[n:], outputs, strict=True)
        return [*results, *(e.insert(v, t, to_memory(o.shape, index)) for v, t, o in stores)]

    def epilogue(
        self, frame: Frame, index: Index, accumulators: Sequence[SSAValue], tensors: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """The outputs made from the results at `index` (of the kept dimensions), stored."""
        e, index = frame.e, self.result(index)

        def at(i: Instruction) -> Index:
            return e.simplify(self.place(i, index))

        for r, values in zip(self.reducers, self.split(accumulators), strict=True):
            e.provide(r.hero, index, r.finish(e, values))
        for i in self.places:
            if i.opcode in MOVES and i.opcode != "get-tuple-element":
                e.provide(i, at(i), e.value(i.operands[0], at(i.operands[0])))
        outputs = [frame.fusion.outputs[n] for n in self.after]
        places = [at(o.instruction) for o in outputs]
        # all values first: an output may share its buffer with an input
        values = [o.of(e.value(o.instruction, place)) for o, place in zip(outputs, places, strict=True)]
        stores = zip(values, tensors, places, outputs, strict=True)
        return [e.insert(v, t, to_memory(o.shape, place)) for v, t, place, o in stores]

    def store(self, frame: Frame, which: Sequence[int], tensors: Sequence[SSAValue]) -> None:
        """`tensors` are what those outputs now are."""
        for n, tensor in zip(which, tensors, strict=True):
            frame.outputs[n] = tensor


@dataclass(frozen=True, slots=True)
class Cut:
    """The borders of operands of a concatenation along the reduced axis number ``axis``, both ends included.

    A loop for each operand reads it alone. One loop for all would choose an operand for each element.
    """

    axis: int
    borders: tuple[int, ...]

    @staticmethod
    def of(reduction: Reduction, walked: Sequence[Axis], target: Target) -> Cut | None:
        """The cut of a reduction whose axes are `walked`, if it is worth its code. Not on GPUs."""
        if target.is_gpu or prod(reduction.sizes) < MANY:
            return None
        dims = reduction.arrays[0].shape.dims
        dimension, borders = joined_at(reduction.arrays, dims, code_limit(target))
        reduced = [a for a in walked if a.reduced]
        found = (n for n, a in enumerate(reduced) if [reduction.order[k] for k in a.dims] == [dimension])
        return next((Cut(n, borders) for n in found), None)

    def loop(self, e: FunctionEmitter, sizes: Sequence[int], inits: Sequence[SSAValue], body: Body) -> list[SSAValue]:
        """``body`` at every point of a box of these sizes, in as many loops as there are operands."""
        before = self.axis

        def part_by_part(outer: Index, values: Sequence[SSAValue]) -> list[SSAValue]:
            for start, end in pairwise(self.borders):

                def at(v: Index, carried: Sequence[SSAValue], start: int = start) -> Sequence[SSAValue]:
                    return body((*outer, v[0] + start, *v[1:]), carried)

                values = e.loop([end - start, *sizes[before + 1 :]], values, at)
            return list(values)

        return e.loop(sizes[:before], inits, part_by_part) if before else part_by_part((), inits)


@dataclass(frozen=True, slots=True)
class Walk:
    """A reduction and the loops over its arrays, outermost first.

    ``across``: not in the order of memory. ``lanes``: the elements of each result that lie beside each other in the
    last axis.
    """

    reduction: ReductionCode
    axes: tuple[Axis, ...]
    cut: Cut | None = None
    across: bool = False
    lanes: int = 1

    @property
    def along_rows(self) -> bool:
        """Whether the innermost loop is over what is reduced."""
        return not self.axes or self.axes[-1].reduced


def source_index(reduction: Reduction, axes: Sequence[Axis], variables: Sequence[Expr]) -> list[Expr]:
    """The index into the source where each axis has the value of its variable."""
    index: list[Expr] = [Const(0)] * len(reduction.sizes)
    for axis, variable in zip(axes, variables, strict=True):
        parts = delinearize(variable, [reduction.sizes[d] for d in axis.dims])
        for d, part in zip(axis.dims, parts, strict=True):
            index[d] = part
    return index


def is_small(fusion: Fusion) -> bool:
    """Whether a kernel may have the code for an element several times."""
    return len(fusion.computation.instructions) <= SMALL


def is_large(reduction: Reduction) -> bool:
    """Whether what is reduced comes from far memory."""
    return prod(reduction.sizes) * max(a.shape.element_type.byte_size or 1 for a in reduction.arrays) > LARGE
